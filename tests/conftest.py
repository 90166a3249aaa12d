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
    """The scheduler's and the site's tests begin first, in one process: they take longest.

    Others would wait for the scheduler and for the building of the site, with nothing left to do.
    """
    first = {"cluster": 0, "site": 1}
    items.sort(key=lambda item: first.get(item.path.parent.name, 2))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("OVERPARAM_NO_SKIP"):
        report.outcome, report.longrepr = (
            "failed",
            f"skipped where nothing may be: {report.longrepr[-1]}",
        )
