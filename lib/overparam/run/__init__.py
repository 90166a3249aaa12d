"""Running notebooks: one through papermill, many through Snakemake, the command line, the site, what has changed."""
