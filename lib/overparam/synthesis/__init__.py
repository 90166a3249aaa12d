"""What the notebooks that draw on several papers measure on common ground."""
