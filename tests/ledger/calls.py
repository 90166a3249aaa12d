"""Prints, as JSON, [functions and classes of the library that a claim's page calls at smoke size,
those of them that its fingerprint does not count].

    python calls.py CLAIM
"""

import importlib
import json
import sys
import threading
import types

from ledger import fingerprints, records, registry, run


def main(claim_id):
    run.apply_environment()
    page = registry.claim(claim_id).page
    _, parameters, _ = records.plan(claim_id, "smoke")
    for module in fingerprints.modules(page.notebook):
        importlib.import_module(module)  # what an import calls defines what it belongs to
    counted = {
        (str(fingerprints._file(statement["module"])), name)
        for statement in fingerprints.reached(page.notebook, parameters)
        for name in statement["defines"] or []
    }
    neutral = {str(fingerprints._file(module)) for module in fingerprints.NEUTRAL}
    library = str(fingerprints.LIBRARY / fingerprints.PACKAGE)
    called = set()

    def see(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(library):
            called.add((code.co_filename, code.co_qualname.split(".")[0]))

    kernel = types.ModuleType("__main__")
    sys.modules["__main__"] = kernel
    cells = json.loads(page.notebook.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), claim_id, "exec")
            sys.setprofile(see)
            threading.setprofile(see)
            exec(code, kernel.__dict__)
            sys.setprofile(None)
        if "parameters" in cell["metadata"].get("tags", []):
            kernel.__dict__.update(parameters)
    called = {(file, name) for file, name in called if file not in neutral}
    named = {(file, name) for file, name in called if not name.startswith("<")}
    print(json.dumps([sorted(named), sorted(named - counted)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
