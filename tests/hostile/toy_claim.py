"""A project with one claim, whose files may hold anything."""

import nbformat

from overparam.errors import OverparamError
from overparam.record import checks

CLAIM = "guo2024-hostile"  # of a paper that the site has a text for
CHECKS = f"""
[{CLAIM}]
title = "A toy"
source = "Lemma 1"
kind = "lemma"

[[{CLAIM}.checks]]
name = "value"
tag = "R"
wording = "the value"
relation = "<="
threshold = 1.0
"""
PARAMETERS = 'profile = "smoke"\nseed = 0\nn = 5\nrate = 0.5\nword = "a"\nsizes = [1, 2]\n'


class Toy:
    """The folder of notebooks of a project with one claim; what is written is read anew."""

    def __init__(self, folder):
        self.notebook, self.profiles = folder / f"{CLAIM}.ipynb", folder / "profiles.toml"
        self.registered = folder / "checks" / "guo2024.toml"

    def write(self, *, registered=CHECKS, profiles="", notebook=None):
        """Each as text or bytes; by default as they should be."""
        for path, content in (
            (self.registered, registered),
            (self.profiles, profiles),
            (self.notebook, cells() if notebook is None else notebook),
        ):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        checks.registry.cache_clear()


def cells(*code, parameters=PARAMETERS, **metadata):
    """A notebook of code cells behind that of the parameters, as JSON."""
    first = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    made = nbformat.v4.new_notebook(cells=[first, *map(nbformat.v4.new_code_cell, code)], metadata=metadata)
    return nbformat.writes(made)


def tried(read, *words):
    """What a reader returns; None where it refuses with an error of ours, in two short lines that hold the words."""
    try:
        return read()
    except OverparamError as error:
        message = str(error)
    assert len(message) < 1000
    assert message.count("\n") < 2
    for word in words:
        assert word in message
    return None
