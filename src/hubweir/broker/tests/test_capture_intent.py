"""An intent is durable under a free name; names that are taken are passed over by seconds, and not for ever."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hubweir.broker.capture_intent import TAKEN_NAMES, release, save_intent
from hubweir.broker.capture_places import CapturePlaces, CaptureWorld
from hubweir.broker.capture_slots import CaptureSlots
from hubweir.capture.capture_mark import MARK_NAME, CaptureMark, Intent, unpack_mark
from hubweir.capture.destination import LocalFolder
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.messaging_store.whole_file import read_sealed
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import Fault, MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv

LOCAL = CaptureDestination.LOCAL_FOLDER


@pytest.fixture
def world() -> CaptureWorld:
    files = MemoryFiles("intent")
    files.make_folder("log")
    places = CapturePlaces(files, "captured")
    pace = CapturePace()
    return CaptureWorld(SimulatedEnv(0, files=files), Counters(), places, CaptureSlots(pace), pace)


def intend(last_second: int) -> CaptureMark:
    """The next second's name."""
    intent = Intent(0, 1, 10, last_second + 1, f"{last_second + 1}.avro", LOCAL, "")
    return CaptureMark(b"s" * 16, 0, 0, 0, intent=intent)


def test_the_mark_is_durable_when_it_is_given_back(world: CaptureWorld) -> None:
    mark = save_intent(world, "log", intend)
    body = read_sealed(world.env.files, f"log/{MARK_NAME}")
    assert body is not None and unpack_mark(body) == mark


def test_names_of_finished_files_and_of_files_under_way_are_passed_over(world: CaptureWorld) -> None:
    place = LocalFolder(world.places.files, "captured")
    place.begin("1.avro").commit()
    assert place.claim("2.avro")
    mark = save_intent(world, "log", intend)
    assert mark.intent is not None and mark.intent.name == "3.avro"
    assert not place.claim("3.avro")
    assert world.places.files.list("captured") == ["1.avro", "2.avro.claim", "3.avro.claim"]


def test_a_name_is_free_again_when_it_is_let_go_of(world: CaptureWorld) -> None:
    mark = save_intent(world, "log", intend)
    assert mark.intent is not None
    release(world.places, mark.intent)
    assert not world.places.files.list("captured")
    release(world.places, mark.intent)  # twice does nothing


def test_letting_go_in_a_destination_that_is_away_raises_nothing(world: CaptureWorld) -> None:
    blob = Intent(0, 1, 10, 1, "1.avro", CaptureDestination.AZURE_BLOCK_BLOB, "films")
    release(world.places, blob)


def test_a_destination_where_every_name_is_taken_is_a_fault(world: CaptureWorld) -> None:
    place = LocalFolder(world.places.files, "captured")
    for second in range(1, TAKEN_NAMES + 1):
        assert place.claim(f"{second}.avro")
    with pytest.raises(FileExistsError, match="names in a row"):
        save_intent(world, "log", intend)
    assert not world.env.files.exists(f"log/{MARK_NAME}")


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.ENOSPC, Fault.SYNC_EIO])
def test_a_claim_is_let_go_of_only_when_no_mark_can_hold_its_intent(world: CaptureWorld, fault: Fault) -> None:
    files = world.places.files
    assert isinstance(files, MemoryFiles)
    kept = let_go = 0
    for nth in range(1, 30):
        for path in (f"log/{MARK_NAME}", "captured/1.avro.claim", "captured/2.avro.claim"):
            if files.exists(path):
                files.remove(path)
        files.plan(files.calls + nth, fault)
        with suppress(OSError):
            save_intent(world, "log", intend)
            files.heal()
            continue
        files.heal()
        if files.exists(f"log/{MARK_NAME}"):  # a start would find the intent
            assert files.exists("captured/1.avro.claim")
            kept += 1
        else:
            let_go += not files.list("captured")
    assert let_go and (kept or fault is not Fault.EIO)
