"""The page of a run: the notebook's present prose around the code and the outputs of its executed copy."""

import base64
import copy

from ..errors import ClaimError


def merged(notebook, executed, pictures=None):
    """The executed notebook with the Markdown cells of the present one; contents as of json.loads.

    A corrected sentence makes no record stale, so the executed copy may hold an old one. Where the code cells are not
    the same in number, the code has changed, and the copy stays as it is.
    pictures: the folder that holds the records of the run, from which pictures are put back into the outputs.
    """
    page = copy.deepcopy(executed)
    ran = [cell for cell in page["cells"] if cell["cell_type"] == "code" and not _is_injected(cell)]
    present = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if len(ran) == len(present):
        injected = [cell for cell in page["cells"] if _is_injected(cell)]
        cells, code = [], iter(ran)
        for cell in notebook["cells"]:
            cells.append(next(code) if cell["cell_type"] == "code" else copy.deepcopy(cell))
            if "parameters" in cell["metadata"].get("tags", []):
                cells += injected
        page["cells"] = cells
    if pictures is not None:
        _put_back(page, pictures)
    return page


def _is_injected(cell):
    return "injected-parameters" in cell["metadata"].get("tags", [])


def without_pictures(executed):
    """The executed notebook with the pictures that its records hold as links to them, so that each is there once."""
    page = copy.deepcopy(executed)
    for output in _outputs_of_record(page):
        claim, _, name = output["metadata"]["overparam"].partition("/")
        if output["data"].pop("image/png", None):
            output["data"]["text/markdown"] = f"![{name.removesuffix('.png')}](../{claim}/{name})"
    return page


def _put_back(page, folder):
    for output in _outputs_of_record(page):
        file = folder / output["metadata"]["overparam"]
        try:
            picture = base64.b64encode(file.read_bytes()).decode()
        except OSError as error:
            raise ClaimError(f"{file} is not readable ({error}); run the claim again") from error
        output["data"].pop("text/markdown", None)
        output["data"]["image/png"] = picture


def _outputs_of_record(page):
    """Outputs that `Claim.figure` marked with the place of their picture, <claim>/<name>.png."""
    outputs = [output for cell in page["cells"] for output in cell.get("outputs", [])]
    return [output for output in outputs if isinstance(output.get("metadata", {}).get("overparam"), str)]
