"""The reviewer's site: every executed notebook and every verdict, from the committed records and from nothing else."""

from .build import build

__all__ = ["build"]
