"""No way leads out of what was declared."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import warnings
from pathlib import Path

import pytest

from sidecars.distill import artifact
from sidecars.distill.artifact import Artifacts
from sidecars.distill.errors import QuestionError, UnreadableError

SECRET = "the secret outside"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder ``logs`` with one file, and a secret beside it."""
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    (tmp_path / "logs" / "run.log").write_text("one\n")
    (tmp_path / "logs" / "deep" / "two.log").write_text("two\n")
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path


def read(artifacts: Artifacts, name: str) -> str:
    fd = artifacts.open(name)
    try:
        return os.pread(fd, 1000, 0).decode()
    finally:
        os.close(fd)


def names(artifacts: Artifacts) -> list[str]:
    return [entry.name for entry in artifacts.entries()]


def test_a_folder_offers_its_files_by_the_way_down(place: Path) -> None:
    with Artifacts([place / "logs"]) as artifacts:
        assert names(artifacts) == [f"{place}/logs/deep/two.log", f"{place}/logs/run.log"]
        assert read(artifacts, f"{place}/logs/deep/two.log") == "two\n"


def test_nothing_declared_is_a_fault_of_the_question() -> None:
    with pytest.raises(QuestionError):
        Artifacts([])


@pytest.mark.parametrize("name", ["gone.log", "gone/deeper.log", "nul\0byte"])
def test_what_is_missing_is_unreadable(place: Path, name: str) -> None:
    with pytest.raises(UnreadableError):
        Artifacts([f"{place}/{name}"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user who may not read a folder")
def test_a_folder_that_may_only_be_passed_is_passed() -> None:
    # Not below tmp_path, whose folders pytest keeps closed.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passed" / "run.log"
        path.parent.mkdir()
        path.write_text("one\n")
        path.parent.chmod(0o711)
        Path(folder).chmod(0o711)
        assert as_somebody_else(path) == "one\n"


def as_somebody_else(path: Path) -> str:
    """What a user without rights reads of it."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        # The interpreter itself may lie where the other user cannot go: it has to be this very process.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            with Artifacts([path]) as artifacts:
                os.write(write_end, read(artifacts, str(path)).encode())
        except BaseException as error:  # noqa: BLE001 - nothing may escape into a second pytest
            os.write(write_end, repr(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    told = os.read(read_end, 1000).decode()
    os.close(read_end)
    os.close(write_end)
    return told


def test_a_declared_link_means_its_target(place: Path) -> None:
    (place / "latest.log").symlink_to("logs/run.log")
    with Artifacts([place / "latest.log"]) as artifacts:
        assert read(artifacts, f"{place}/latest.log") == "one\n"


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", "run.log", ".."])
def test_links_inside_a_folder_are_left_out_and_cannot_be_opened(place: Path, target: str) -> None:
    (place / "logs" / "link").symlink_to(target)
    with Artifacts([place / "logs"]) as artifacts:
        assert f"{place}/logs/link" not in names(artifacts)
        assert artifacts.left_out[0][0] == f"{place}/logs/link"
        with pytest.raises(UnreadableError):
            artifacts.open(f"{place}/logs/link")


@pytest.mark.parametrize(
    "way", ["../secret.txt", "logs/../secret.txt", "/etc/passwd", "deep/../../secret.txt", "", ".", "/", "logs"]
)
def test_no_name_that_a_model_writes_leads_out(place: Path, way: str) -> None:
    with Artifacts([place / "logs"]) as artifacts, pytest.raises(UnreadableError):
        artifacts.open(artifacts.resolve(way))


def test_a_sibling_with_the_same_beginning_is_outside(place: Path) -> None:
    (place / "logs-evil").mkdir()
    (place / "logs-evil" / "run.log").write_text(SECRET)
    with Artifacts([place / "logs"]) as artifacts:
        for name in (f"{place}/logs-evil/run.log", "logs-evil/run.log"):
            with pytest.raises(UnreadableError):
                artifacts.resolve(name)


def test_names_are_understood_by_their_ending_when_only_one_has_it(place: Path) -> None:
    (place / "logs" / "run").mkdir()
    (place / "logs" / "run" / "two.log").write_text("other")
    with Artifacts([place / "logs"]) as artifacts:
        assert artifacts.resolve("run.log") == f"{place}/logs/run.log"
        assert artifacts.resolve("deep/two.log") == f"{place}/logs/deep/two.log"
        with pytest.raises(UnreadableError, match="2 files"):
            artifacts.resolve("two.log")


def test_a_relative_artifact_is_known_by_its_real_path_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    with Artifacts(["logs"]) as artifacts:
        assert artifacts.resolve(str((place / "logs" / "run.log").resolve())) == "logs/run.log"


def test_a_hard_link_to_a_file_outside_is_left_out(place: Path) -> None:
    os.link(place / "secret.txt", place / "logs" / "hard.log")
    with Artifacts([place / "logs"]) as artifacts:
        assert f"{place}/logs/hard.log" not in names(artifacts)
        assert "hard link" in dict(artifacts.left_out)[f"{place}/logs/hard.log"]


def test_hard_links_that_all_lie_inside_are_read(place: Path) -> None:
    os.link(place / "logs" / "run.log", place / "logs" / "deep" / "same.log")
    with Artifacts([place / "logs"]) as artifacts:
        assert read(artifacts, f"{place}/logs/deep/same.log") == "one\n"


def test_a_file_that_becomes_a_hard_link_after_the_listing_is_refused(place: Path) -> None:
    with Artifacts([place / "logs"]) as artifacts:
        (place / "logs" / "run.log").unlink()
        os.link(place / "secret.txt", place / "logs" / "run.log")
        with pytest.raises(UnreadableError, match="hard link"):
            artifacts.open(f"{place}/logs/run.log")


def test_a_name_that_is_reached_through_a_new_link_does_not_count_as_inside(place: Path) -> None:
    # Two names of one file inside; then one goes outside, and a link leads to it.
    os.link(place / "logs" / "run.log", place / "logs" / "deep" / "same.log")
    with Artifacts([place / "logs"]) as artifacts:
        (place / "logs" / "deep").rename(place / "outside")
        (place / "logs" / "deep").symlink_to(place / "outside")
        with pytest.raises(UnreadableError, match="hard link"):
            artifacts.open(f"{place}/logs/run.log")


def test_a_file_that_becomes_a_link_after_the_listing_is_refused(place: Path) -> None:
    with Artifacts([place / "logs"]) as artifacts:
        (place / "logs" / "run.log").unlink()
        (place / "logs" / "run.log").symlink_to(place / "secret.txt")
        with pytest.raises(UnreadableError, match="link"):
            artifacts.open(f"{place}/logs/run.log")


def test_a_folder_that_becomes_a_link_after_the_listing_is_refused(place: Path) -> None:
    (place / "evil").mkdir()
    (place / "evil" / "two.log").write_text(SECRET)
    with Artifacts([place / "logs"]) as artifacts:
        (place / "logs" / "deep").rename(place / "logs" / "was")
        (place / "logs" / "deep").symlink_to(place / "evil")
        with pytest.raises(UnreadableError):
            artifacts.open(f"{place}/logs/deep/two.log")


def test_a_declared_folder_that_is_swapped_is_still_the_one_declared(place: Path) -> None:
    with Artifacts([place / "logs"]) as artifacts:
        (place / "logs").rename(place / "was")
        (place / "logs").symlink_to(place)
        assert read(artifacts, f"{place}/logs/run.log") == "one\n"


def test_a_declared_file_that_is_swapped_is_still_the_one_declared(place: Path) -> None:
    with Artifacts([place / "logs" / "run.log"]) as artifacts:
        (place / "logs" / "run.log").unlink()
        (place / "logs" / "run.log").symlink_to(place / "secret.txt")
        assert read(artifacts, f"{place}/logs/run.log") == "one\n"


def test_a_swapper_at_work_never_gets_the_secret_out(place: Path) -> None:
    good, evil = place / "logs" / "run.log", place / "logs" / "deep" / "evil"
    name = f"{place}/logs/run.log"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            evil.symlink_to(place / "secret.txt")
            evil.rename(good)
            evil.write_text("one\n")
            evil.rename(good)

    seen: set[str] = set()
    with Artifacts([place / "logs"]) as artifacts:
        swapper = threading.Thread(target=swap)
        swapper.start()
        try:
            for _ in range(2000):
                try:
                    seen.add(read(artifacts, name))
                except UnreadableError as error:
                    seen.add(type(error).__name__)
        finally:
            stop.set()
            swapper.join()
    assert SECRET not in seen
    assert seen <= {"one\n", "", "UnreadableError"}


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/environ", "/proc/1/status", "/sys/kernel/notes"])
@pytest.mark.parametrize("linked", [False, True])
def test_devices_and_the_files_of_the_kernel_are_refused(tmp_path: Path, target: str, linked: bool) -> None:
    if not Path(target).exists():
        pytest.skip("not on this system")
    path = tmp_path / "link" if linked else Path(target)
    if linked:
        path.symlink_to(target)
    with pytest.raises(UnreadableError, match=r"device|kernel"):
        Artifacts([path])


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableError, match="pipe"):
        Artifacts([tmp_path / "pipe"])
    with Artifacts([tmp_path]) as artifacts:
        assert names(artifacts) == []


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/cwd/{os.path.relpath(tmp_path / 's')}")
        with pytest.raises(UnreadableError, match="socket"):
            Artifacts([tmp_path / "s"])


def test_ignore_rules_are_those_of_git(tmp_path: Path) -> None:
    for name in ("a.log", "keep.log", "sub/b.log", "sub/c.txt", "build/x.txt", ".git/config", "sub/build/y.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n/build/\n")
    (tmp_path / "sub" / ".gitignore").write_text("!b.log\n")
    with Artifacts([tmp_path]) as artifacts:
        found = {name.removeprefix(f"{tmp_path}/") for name in names(artifacts)}
    assert found == {".gitignore", "keep.log", "sub/.gitignore", "sub/b.log", "sub/c.txt", "sub/build/y.txt"}
    with Artifacts([tmp_path], ignore=False) as artifacts:
        found = {name.removeprefix(f"{tmp_path}/") for name in names(artifacts)}
    assert {"a.log", "build/x.txt"} <= found
    assert ".git/config" not in found


def test_files_beyond_the_most_are_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MOST_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.log").write_text("x")
    with Artifacts([tmp_path]) as artifacts:
        assert len(names(artifacts)) == 3
        assert "first 3 files" in artifacts.left_out[0][1]


def test_nothing_stays_open(place: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    with Artifacts([place / "logs", place / "secret.txt"]) as artifacts:
        read(artifacts, f"{place}/logs/run.log")
    with pytest.raises(UnreadableError):
        Artifacts([place / "logs", place / "gone"])
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    assert after == before
