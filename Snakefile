# One rule: run a notebook, which then replaces its own figures, record and executed copy in figures/<profile>/.
#
# `overparam figures --profile laptop` is the usual way in: it hands over the notebooks whose record was made from other
# sources than the present ones, compared by content. By hand, for all of these:
#   snakemake --cores 2 --directory logs --forcerun notebook --config profile=laptop
# Resources bear the names that Snakemake's SLURM plug-in asks the scheduler for. On one machine without a scheduler
# `--resources gpu=1` lets one notebook at a time have the GPU; CUDA_VISIBLE_DEVICES says which one that is.

import os
import sys

from ledger import batch, paths, records, registry

PROFILE = config.get("profile", "smoke")
STEMS = [stem for stem in config.get("claims", "").split(",") if stem]
STEMS = STEMS or [stem for stem in records.pages(PROFILE) if records.stale(stem, PROFILE)]


def declared(name, default):
    return lambda wildcards: registry.size_of(wildcards.stem, wildcards.profile).resources.get(name, default)


def machine_memory(wildcards):
    return batch.machine_memory(registry.size_of(wildcards.stem, wildcards.profile).resources)


rule all:
    input:
        expand("done/{profile}/{stem}", profile=PROFILE, stem=STEMS),


# The output is a mark, not the figures: Snakemake deletes the outputs of a job that fails or starts anew, and a good
# record must outlive a failed attempt to replace it. The log is empty while the notebook runs, then says how it ended.
rule notebook:
    input:
        # from the folder of logs, in which Snakemake works: names of outer folders may hold braces
        lambda wildcards: os.path.relpath(registry.claim(wildcards.stem).page.notebook, paths.LOGS),
    output:
        touch("done/{profile}/{stem}"),
    log:
        "ended/{profile}/{stem}.json",
    threads: declared("threads", 1)
    resources:
        gpu=declared("gpu", 0),
        mem_mb=machine_memory,
        runtime=lambda wildcards: 10 + declared("minutes", 10)(wildcards),
    params:
        python=sys.executable,
        # not fewer on a machine with fewer cores: their number decides how sums round
        threads=lambda wildcards, threads: max(threads, declared("threads", 1)(wildcards)),
    shell:
        "{params.python:q} -m ledger.cli run {wildcards.stem} --profile {wildcards.profile}"
        " --threads {params.threads} --json > {log:q}"
