"""One data folder leads to one short folder of sockets, of its user alone."""

import os
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hubweir.service import runtime_folder
from hubweir.service.runtime_folder import RuntimeFolder, RuntimeFolderUnusable

SOCKET_PATH_LIMIT = 107  # of Linux, without the zero at its end


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of /tmp."""
    made = tmp_path / "place"
    made.mkdir()
    monkeypatch.setattr(runtime_folder, "_FIXED_PLACE", made)
    return made


def test_one_data_folder_leads_to_one_folder_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "link").symlink_to(data)
    monkeypatch.chdir(tmp_path)
    found = {RuntimeFolder.of(name).path for name in (str(data), "data", "./data/", str(tmp_path / "link"))}
    assert len(found) == 1
    assert RuntimeFolder.of("other").path not in found
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in (*found, *(each.parent for each in found)))


def test_paths_are_short_whatever_the_data_folder_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_folder, "_FIXED_PLACE", Path("/tmp"))
    folder = RuntimeFolder.of("/nowhere" + "/long" * 200)
    assert all(
        len(str(path)) < SOCKET_PATH_LIMIT // 2 for path in (folder.keeper, folder.broker(63), folder.process(63))
    )
    folder.path.rmdir()


def test_processes_that_listened_are_found_and_nothing_else() -> None:
    folder = RuntimeFolder.of("data")
    for path in (
        folder.process(10),
        folder.process(2),
        folder.broker(1),
        folder.keeper,
        folder.path / "process-x.sock",
    ):
        path.touch()
    assert folder.processes() == [2, 10]


def test_a_folder_that_others_may_look_into_is_refused(place: Path) -> None:
    folder = RuntimeFolder.of("data")
    folder.path.chmod(0o750)
    with pytest.raises(RuntimeFolderUnusable, match=f"{folder.path} .* remove it"):
        RuntimeFolder.of("data")


def test_a_link_in_its_place_is_refused(tmp_path: Path, place: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (place / f"hubweir-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeFolderUnusable):
        RuntimeFolder.of("data")


def test_a_folder_is_left_only_where_processes_were_and_only_when_it_is_ours(place: Path) -> None:
    assert RuntimeFolder.left("data") is None
    folder = RuntimeFolder.of("data")
    assert RuntimeFolder.left("data") == folder
    folder.path.chmod(0o755)
    assert RuntimeFolder.left("data") is None


def test_a_service_that_ended_leaves_nothing() -> None:
    folder = RuntimeFolder.of("data")
    folder.keeper.touch()
    folder.leave()
    assert not folder.path.exists()
    folder.leave()


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell who listens")
def test_a_start_that_failed_leaves_the_paths_of_processes_that_serve_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as short:  # a path of a socket has few characters
        monkeypatch.setattr(runtime_folder, "_FIXED_PLACE", Path(short))
        folder = RuntimeFolder.of("data")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder.process(1)))
            listener.listen()
            folder.process(0).touch()
            folder.leave()
            assert list(folder.path.iterdir()) == [folder.process(1)]
        folder.leave()
        assert not folder.path.exists()
