"""The reviewer's site: every executed notebook and every verdict, from the committed records and from nothing else."""

from .build import build
from .pages import diff_page

__all__ = ["build", "diff_page"]
