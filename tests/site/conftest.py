"""The site, built once from the committed records.

And a browser that may reach nothing but files.
"""

import os
import shutil

import pytest
from filelock import FileLock

from ledger import paths
from ledger.site.build import build


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of pages, the same for all workers of a test run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with FileLock(folder / "site.lock"):
        if not (folder / "site" / "done").exists():
            build(folder / "site", paths.ROOT / "figures")
            (folder / "site" / "done").touch()
    return folder / "site" / "html"


@pytest.fixture(scope="session")
def chromium():
    """Debian's browser, headless, driven by Playwright."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        reason = "no browser here: install Debian's chromium to test the pages"
        pytest.fail(reason) if os.environ.get("OVERPARAM_NEEDS_BROWSER") else pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    quiet = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=quiet)
        yield browser
        browser.close()
