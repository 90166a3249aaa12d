"""How nbval compares a cell's output with the stored one (`notebooks/conftest.py`)."""

import shutil
import subprocess
import sys

import nbformat
import pytest

from ledger.paths import NOTEBOOKS

REPORT = """**As printed:** Follows as printed.
**Where measured:** {verdict}
**Conditions:** Not met, by a factor of 120. The width is too small.

| check | measured, with 95 % interval | required | the paper | outcome |
|---|---|---|---|---|
| The slope in $m$ (of three nets) is at least 1.5. | {measured} | at least 1.5 | – | {outcome} |

*Size smoke: two draws*
"""
FIRST = {"verdict": "Holds. 1 of 1 check holds.", "measured": "2.14 ± 0.19", "outcome": "✓"}
UNDECIDED = {"verdict": "Not tested. 0 of 1 check hold, 1 is undecided.", "outcome": "undecided"}
SAME = [
    (
        r"off by $1.6\cdot10^{-15}$ or $1.9\cdot10^{-6}$",
        r"off by $8.9\cdot10^{-16}$ or $6.3\cdot10^{-7}$",
    ),
    (
        "2 of 3 nets end at 0.13, 4,000 rows",
        "2 of 3 nets end at 0.14, 4,000 rows",
    ),  # one in the last digit
    ("it falls by 61.2 %", "it falls by 63.0 %"),  # less than a tenth
    ("off by rounding", "off by 2e-12"),
    (REPORT.format(**FIRST), REPORT.format(**UNDECIDED, measured="2.12 ± 0.9")),
    (REPORT.format(**FIRST), REPORT.format(**UNDECIDED, measured="2.12 (1.01 to unbounded)")),
    (
        REPORT.format(**FIRST),
        REPORT.format(**UNDECIDED, measured="2.12 (one draw has no interval)"),
    ),
    (
        "du-x  [smoke]  HOLDS IN PART\n  a  0.1 ± 2  undecided",
        "du-x  [smoke]  HOLDS\n  a  0.1 ± 1  holds",
    ),
]
OTHER = [
    (r"falls to $1.6\cdot10^{-5}$", r"falls to $8.9\cdot10^{-5}$"),
    ("2 of 3 nets end at 0.13", "2 of 3 nets end at 0.16"),
    ("it falls by 61.2 %", "it falls by 69 %"),
    ("it falls by 61.2 %", "it rises by 61.2 %"),
    ("a slope of -0.5", "a slope of 0.5"),
    ("epochs: 1, 2", "epochs: 1, 2, 3"),
    ("it lies (0.1 to 0.2) |", "it lies (0.1 to 0.5) |"),  # no report
    (REPORT.format(**FIRST), REPORT.format(**FIRST | {"measured": "1.81 ± 0.19"})),
    (REPORT.format(**FIRST), REPORT.format(**FIRST).replace("slope", "power")),
    (REPORT.format(**FIRST), REPORT.format(**FIRST).replace("at least 1.5 |", "at least 3.5 |")),
    (REPORT.format(**FIRST), REPORT.format(**FIRST).replace("of 120", "of 150")),
]


def compared(folder, stored, shown):
    """Whether nbval passes a notebook that shows these texts and has those stored."""
    cells = []
    for count, (old, new) in enumerate(zip(stored, shown, strict=True), 1):
        source = f"from IPython.display import Markdown, display\ndisplay(Markdown({new!r}))"
        cell = nbformat.v4.new_code_cell(source, execution_count=count)
        data = {"text/markdown": old, "text/plain": "<IPython.core.display.Markdown object>"}
        cell.outputs = [nbformat.v4.new_output("display_data", data)]
        cells.append(cell)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (folder / "toy2020").mkdir()
    page = folder / "toy2020" / "page.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), page)
    shutil.copy(NOTEBOOKS / "conftest.py", folder)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        str(folder),
        "-p",
        "no:cacheprovider",
        "--color=no",
    ]
    out = subprocess.run(
        [*command, "--tb=short", "-rA", "-q"], cwd=folder, capture_output=True, text=True
    ).stdout
    return [f"PASSED toy2020/page.ipynb::Cell {i}" in out for i in range(len(cells))], out


@pytest.mark.parametrize(("pairs", "equal"), [(SAME, True), (OTHER, False)], ids=["same", "other"])
def test_numbers_may_move_a_little_and_words_not_at_all(tmp_path, pairs, equal):
    passed, out = compared(tmp_path, *zip(*pairs, strict=True))
    assert passed == [equal] * len(pairs), out
    failures, _, _ = out.partition(
        "short test summary info"
    )  # which repeats them in full where $CI is set
    assert failures.count("Cell outputs differ") == (0 if equal else len(pairs))


def test_pages_run_in_the_kernel_of_a_run_whatever_others_are_called_so(tmp_path, monkeypatch):
    """Nor do settings of the user's IPython get in."""
    kernel, profile = tmp_path / "kernels" / "python3", tmp_path / "profile_default"
    for folder in (kernel, profile, tmp_path / "pages"):
        folder.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        '{"argv": ["/bin/false"], "display_name": "x", "language": "python"}'
    )
    (profile / "ipython_kernel_config.py").write_text("1 / 0\n")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    passed, out = compared(tmp_path / "pages", ["a"], ["a"])
    assert passed == [True], out
