"""Starts that service.py refuses: the reason is named, the data folder stays as it was, and nothing stays open."""

import asyncio
import errno
import os
import socket
from pathlib import Path

import pytest

from hubweir.broker.capture.blob_upload import BadStorage
from hubweir.cli.data_folder import DataFolder
from hubweir.drivers.listening_socket import AddressTaken
from hubweir.errors import NewerFormat, OldFormat, StoreLocked
from hubweir.service.data_folder import DataFolderUnusable
from hubweir.service.service import Service
from hubweir.service.tests.started_service import create_hub, settings
from hubweir.testing.event_loops import run_on


def test_a_data_folder_has_one_owner(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path))
        with pytest.raises(StoreLocked):
            await Service.start(settings(tmp_path))
        await create_hub(service, "orders")
        await service.stop()
        await (await Service.start(settings(tmp_path))).stop()

    run_on("asyncio", scenario())


def test_a_taken_port_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(AddressTaken, match=f"port {port}"):
                await Service.start(settings(tmp_path, port=(0, port)))
        await (await Service.start(settings(tmp_path, port=(port,)))).stop()

    run_on("asyncio", scenario())


def test_a_newer_data_folder_is_left_untouched(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "FORMAT").write_text("hubweir data 99\n")

    async def scenario() -> None:
        with pytest.raises(NewerFormat, match="nothing was changed"):
            await Service.start(settings(tmp_path))

    run_on("asyncio", scenario())
    assert sorted(os.listdir(folder)) == ["FORMAT"]
    assert (folder / "FORMAT").read_text() == "hubweir data 99\n"


def test_a_data_folder_of_an_earlier_format_is_refused_and_left_as_it_is_byte_for_byte(tmp_path: Path) -> None:
    wanted = settings(tmp_path)
    folder = Path(wanted.data)

    def contents() -> dict[str, tuple[bytes, int]]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    async def serve_once() -> None:
        service = await Service.start(wanted)
        await create_hub(service, "orders")
        await service.stop()

    async def start() -> None:
        with pytest.raises(
            OldFormat, match="nothing was changed; use the version that wrote it, or another"
        ) as refused:
            await Service.start(wanted)
        assert wanted.data in str(refused.value)
        assert "'hubweir data 2'" in str(refused.value) and "reads 'hubweir data 3'" in str(refused.value)

    asyncio.run(serve_once())
    (folder / "FORMAT").write_bytes(b"hubweir data 2\n")
    before = contents()
    asyncio.run(start())
    with pytest.raises(OldFormat):
        DataFolder(folder)
    assert contents() == before and "LOCK" in before


def test_a_data_folder_that_cannot_be_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")

    async def scenario() -> None:
        with pytest.raises(DataFolderUnusable, match="data folder .*data.*File exists"):
            await Service.start(settings(tmp_path))

    run_on("asyncio", scenario())


def test_a_disk_that_refuses_the_first_write_ends_the_start_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def scenario() -> None:
        with pytest.raises(DataFolderUnusable, match="No space left on device"):
            await Service.start(settings(tmp_path))
        monkeypatch.undo()
        await (await Service.start(settings(tmp_path))).stop()  # nothing stayed locked

    monkeypatch.setattr(os, "pwritev", full)
    run_on("asyncio", scenario())


def test_a_storage_account_that_cannot_be_ends_the_start_without_its_key(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(BadStorage) as refused:
            await Service.start(settings(tmp_path, capture_storage="AccountKey=geheim"))
        assert "geheim" not in str(refused.value)
        # Nothing stays open: the folder can be taken over.
        await (await Service.start(settings(tmp_path))).stop()

    run_on("asyncio", scenario())


def test_a_capture_folder_that_cannot_be_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "films").write_text("a file stands where the folder should be")

    async def scenario() -> None:
        with pytest.raises(DataFolderUnusable, match="films"):
            await Service.start(settings(tmp_path, capture_folder=str(tmp_path / "films")))

    run_on("asyncio", scenario())
