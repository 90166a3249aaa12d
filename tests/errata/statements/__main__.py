"""Writes what is recomputed of the statements beside the errata."""

from ledger import paths, registry

from . import stored

stored().to_csv(paths.NOTEBOOKS / registry.ERRATA / "statements.csv", index=False)
