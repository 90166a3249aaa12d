"""Records of tests go to a folder of their own.

Where OVERPARAM_NO_SKIP is set, a skipped test fails the run.
"""

import os

import pytest

os.environ["GIT_CONFIG_GLOBAL"] = os.devnull  # a user's signing or hooks would stop the fixtures


@pytest.fixture(autouse=True)
def figures(tmp_path, monkeypatch):
    """A folder for records.

    The library has the settings of the user's environment, so that tests find the data.
    """
    from ledger import paths, run
    from overparam import settings

    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    monkeypatch.setenv(*run.Run().variables().popitem())  # else a claim is one run by hand
    run.apply_environment()
    monkeypatch.setattr(settings, "checkpoint_code", "")
    return tmp_path / "figures"


def pytest_collection_modifyitems(items):
    """The site's tests begin first: they take longest, and one process builds the site for all.

    At the end, other processes would wait for it with nothing left to do.
    """
    items.sort(key=lambda item: item.path.parent.name != "site")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("OVERPARAM_NO_SKIP"):
        report.outcome, report.longrepr = (
            "failed",
            f"skipped where nothing may be: {report.longrepr[-1]}",
        )
