"""Places: the local folder with the container below it, the account's containers, and none."""

from __future__ import annotations

import pytest

from hubweir.broker.capture.places import CapturePlaces, NoDestination
from hubweir.capture.destination import LocalFolder
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import MemoryFiles


def test_a_container_is_a_folder_below_the_local_one() -> None:
    files = MemoryFiles("places")
    places = CapturePlaces(files, "capture")
    archive = places.destination(CaptureDestination.LOCAL_FOLDER, "below").begin("x.avro")
    archive.commit()
    assert files.exists("capture/below/x.avro")


def test_a_folder_that_was_made_durable_is_not_synced_for_each_file() -> None:
    files = MemoryFiles("places")
    places = CapturePlaces(files, "capture")
    for name, calls in (("ns/1.avro", 4), ("ns/2.avro", 1)):  # each level of the first, then the claim alone
        files.call_names = []
        places.destination(CaptureDestination.LOCAL_FOLDER, "below").claim(name)
        assert files.call_names.count("sync_folder") == calls


def test_blobs_go_to_the_accounts_container() -> None:
    asked: list[str] = []

    def container(name: str) -> LocalFolder:
        asked.append(name)
        return LocalFolder(MemoryFiles("blobs"), "")

    places = CapturePlaces(MemoryFiles("places"), containers=container)
    places.destination(CaptureDestination.AZURE_DATA_LAKE, "films")
    assert asked == ["films"]


def test_without_an_account_blobs_have_no_place() -> None:
    places = CapturePlaces(MemoryFiles("places"))
    with pytest.raises(NoDestination, match="--capture-storage"):
        places.destination(CaptureDestination.AZURE_BLOCK_BLOB, "films")
