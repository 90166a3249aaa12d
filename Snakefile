# One rule: run a notebook, which then replaces its own figures, record and executed copy in figures/<profile>/.
#
# `overparam figures --profile laptop` is the usual way in: it hands over the notebooks whose record was made from other
# sources than the present ones, compared by content. By hand, for all of these:
#   snakemake --cores 2 --forcerun notebook --config profile=laptop
# On a GPU machine add --resources gpu=1; on a cluster --executor slurm.

import sys

from overparam import workflow as notebooks

PROFILE = config.get("profile", "smoke")
STEMS = [stem for stem in config.get("claims", "").split(",") if stem]
STEMS = STEMS or [stem for stem in notebooks.notebooks(PROFILE) if notebooks.stale(stem, PROFILE)]


def resource(name, default):
    return lambda wildcards: notebooks.plan(wildcards.stem, wildcards.profile)[2].get(name, default)


rule all:
    input:
        expand("logs/done/{profile}/{stem}", profile=PROFILE, stem=STEMS),


# The output is a mark, not the figures: Snakemake deletes the outputs of a job that fails or starts anew, and a good
# record must outlive a failed attempt to replace it.
rule notebook:
    input:
        lambda wildcards: notebooks.plan(wildcards.stem, wildcards.profile)[0].path,
    output:
        touch("logs/done/{profile}/{stem}"),
    threads: max(1, (workflow.cores or 1) // max(1, len(STEMS)))
    resources:
        gpu=resource("gpu", 0),
        mem_mb=resource("memory_mb", 4000),
        runtime=resource("minutes", 10),
    params:
        python=sys.executable,
    shell:
        "{params.python:q} -m overparam.cli run {wildcards.stem} --profile {wildcards.profile} --threads {threads} --json"
