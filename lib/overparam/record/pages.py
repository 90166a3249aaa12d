"""The page of a run: the notebook's present prose around the code and the outputs of its executed copy."""


def merged(notebook, executed):
    """The executed notebook with the Markdown cells of the present one; contents as of json.loads.

    A corrected sentence makes no record stale. Where the number of code cells has changed, the copy stays as it is.
    """
    injected = [cell for cell in executed["cells"] if "injected-parameters" in _tags(cell)]
    ran = [cell for cell in executed["cells"] if cell["cell_type"] == "code" and cell not in injected]
    if len(ran) != sum(cell["cell_type"] == "code" for cell in notebook["cells"]):
        return executed
    cells, code = [], iter(ran)
    for cell in notebook["cells"]:
        cells.append(next(code) if cell["cell_type"] == "code" else cell)
        cells += injected if "parameters" in _tags(cell) else []
    cells = [{**cell, "id": f"cell-{i}"} for i, cell in enumerate(cells)]  # the two had ids of their own
    return {**executed, "cells": cells}


def _tags(cell):
    return cell["metadata"].get("tags", [])
