"""What is kept of a run: registered checks and computed verdicts, parameters, where a number comes from, figures."""
