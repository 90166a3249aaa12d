"""The command `overparam`, and what it says where it cannot run."""

import sys

from . import paths

CHECKOUT = (
    "overparam: claims, notebooks and records are in a checkout of the project: clone it, and run\
 pip install -e '.[notebooks]' there"
)
MISSING = "overparam: the command line needs {}: pip install 'overparam[notebooks]'"


def main():
    """Run the command line; a line of explanation where the checkout or a package is missing."""
    if not (paths.ROOT / "notebooks").is_dir():
        sys.exit(CHECKOUT)
    try:
        from . import cli
    except ModuleNotFoundError as error:
        sys.exit(MISSING.format(error.name.partition(".")[0]))
    cli.main()


if __name__ == "__main__":
    main()
