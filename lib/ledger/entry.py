"""The command `overparam`, and what it says where it cannot run."""

import sys

from . import paths

CHECKOUT = (
    "overparam: this is not run from a checkout of the project, which has the claims, their"
    " notebooks and records: clone it, and run pip install -e '.[notebooks]' there"
)
MISSING = "overparam: the command line needs {}: pip install 'overparam[notebooks]'"


def main():
    """Run the command line; a line of explanation where the checkout or a package is missing."""
    require_checkout()
    try:
        from . import cli
    except ModuleNotFoundError as error:
        sys.exit(MISSING.format(error.name.partition(".")[0]))
    cli.main()


def require_checkout():
    """Exit with code 2 and a line of explanation where the notebooks are not here."""
    if not paths.NOTEBOOKS.is_dir():
        print(CHECKOUT, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
