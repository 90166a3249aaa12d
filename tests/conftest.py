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
    """The scheduler's tests begin the first third and the site's the second: they take longest.

    Each of three processes begins with a third, and takes from others what they have not begun. So
    one process alone uses the scheduler, and one alone builds the site.
    """
    of = {"cluster": [], "site": []}
    rest = [item for item in items if item.path.parent.name not in of]
    for item in items:
        of.get(item.path.parent.name, []).append(item)
    third = max(len(items) // 3 - len(of["cluster"]), 0)
    items[:] = [*of["cluster"], *rest[:third], *of["site"], *rest[third:]]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("OVERPARAM_NO_SKIP"):
        report.outcome, report.longrepr = (
            "failed",
            f"skipped where nothing may be: {report.longrepr[-1]}",
        )
