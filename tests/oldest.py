"""Print the oldest versions that pyproject.toml allows of the library's own dependencies, for pip.

Of each the last patch release: scipy's normal distribution in 1.16.0 to 1.16.2 is random in its
fifth digit, and tests/errata compares six.

`python tests/oldest.py > constraints.txt; pip install --constraint constraints.txt -e '.[test]'`
"""

import re
import tomllib
from pathlib import Path


def oldest(pyproject):
    """["torch==2.11", ..] of the dependencies ["torch>=2.11", ..] of a project's table."""
    pinned = []
    for requirement in pyproject["project"]["dependencies"]:
        name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
        pinned.append(f"{name}=={version}.*")
    return pinned


if __name__ == "__main__":
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
    print("\n".join(oldest(tomllib.loads(text))))
