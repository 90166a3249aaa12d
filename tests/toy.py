"""A toy claim in its two files, for the projects that tests make.

And readers of what may be broken.
"""

import nbformat

from overparam.errors import OverparamError

PARAMETERS = (
    'profile = "smoke"\nseed = 0\nwidth = 5\nseconds = 0.0\nrate = 0.5\nword = "a"\nsizes = [1, 2]'
)
REGISTERED = """title = "A toy"
source = "Lemma 1"
kind = "experiment"
claim = "The value is small."

[checks.value]
asks = "The value is at most {at_most}."
holds = "<= {at_most}"

"""


def notebook(claim, body):
    """A notebook that computes `value`, and measures it, as JSON."""
    code = [f'from ledger.claim import Claim\nclaim = Claim("{claim}", globals())', body.strip()]
    code.append('claim.check("value", value)\nclaim.report()')
    cells = [
        nbformat.v4.new_code_cell(source, id=f"c{i}")
        for i, source in enumerate([PARAMETERS, *code])
    ]
    cells[0].metadata.tags = ["parameters"]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells))


def file(notebooks, claim, suffix):
    """Where a claim's notebook (.ipynb) or what is registered of it (.toml) lies."""
    paper, _, slug = claim.partition("-")
    return notebooks / paper / f"{slug}{suffix}"


def write(notebooks, claim, body, tables=""):
    """Write both files of a claim; tables: more TOML, such as its sizes."""
    file(notebooks, claim, "").parent.mkdir(parents=True, exist_ok=True)
    file(notebooks, claim, ".ipynb").write_text(notebook(claim, body))
    file(notebooks, claim, ".toml").write_text(REGISTERED.format(at_most=1.0) + tables)


def tried(read, *words):
    """What a reader returns.

    None where it refuses with an error of ours, in two short lines that hold the words.
    """
    try:
        return read()
    except OverparamError as error:
        message = str(error)
    assert len(message) < 1000
    assert message.count("\n") < 2
    for word in words:
        assert word in message
    return None
