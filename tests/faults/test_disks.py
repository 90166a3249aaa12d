"""Full and read-only disks: what was there stays, and the next run heals."""

from toys import complains


def fill(folder, spare):
    """Leave so many bytes free; returns the file that takes the rest."""
    ballast = folder / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                continue
        except OSError:
            file.truncate(file.tell() - spare)
    return ballast


def test_full_and_read_only_disks(project, mount):
    project.only("toy2020-trains")
    for folder in (project.figures, project.logs):
        mount(folder, size="2m")
    assert project.run("run", "toy2020-trains")[0] == 0
    before = project.folder("toy2020-trains")
    for full, spare, expected in (
        (
            project.logs,
            2**16,
            ["No space left on device", "full traceback in"],
        ),  # enough for the notebook alone
        (project.logs, 0, ["No space left on device", "nothing was overwritten"]),
        (project.figures, 0, ["OSError: [Errno 28] No space left on device", "full traceback in"]),
    ):
        ballast = fill(full, spare)
        assert complains(project.run("run", "toy2020-trains"), *expected)
        ballast.unlink()
        assert project.folder("toy2020-trains") == before
    code, _, err = project.run("run", "toy2020-trains")
    assert code == 0, err
    assert project.left() == []
    renewed = project.folder("toy2020-trains")
    assert renewed != before

    project.smoke(width=1)
    mount(project.figures, read_only=True)
    for words in (["run", "toy2020-trains"], ["figures"]):
        assert complains(
            project.run(*words),
            f"cannot write to {project.figures / 'smoke'}: Read-only file system",
        )
    assert project.folder("toy2020-trains") == renewed


def test_no_room_for_a_download(project, mount, host):
    cache = project.root / "data" / "cache"
    mount(cache, size="128k")
    code, _, err = project.run("data", "fetch", "mnist")
    assert (code, "127.0.0.1: No space left on device" in err) == (1, True), err
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_a_record_on_another_disk_than_its_size(project, mount):
    """Outputs are moved into place; a rename does not reach another disk."""
    project.only("toy2020-fine")
    mount(project.figures / "smoke" / "toy2020-fine", size="2m")
    code, out, err = project.run("run", "toy2020-fine")
    assert code == 0, out + err
    assert project.record("toy2020-fine")
