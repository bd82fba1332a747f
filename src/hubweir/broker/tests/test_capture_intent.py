"""An intent is durable under a free name; names that are taken are passed over by seconds, and not for ever."""

from __future__ import annotations

import pytest

from hubweir.broker.capture_intent import TAKEN_NAMES, save_intent
from hubweir.broker.capture_places import CapturePlaces, CaptureWorld
from hubweir.broker.capture_slots import CaptureSlots
from hubweir.broker.claimed_names import ClaimedNames
from hubweir.capture.capture_mark import MARK_NAME, CaptureMark, Intent, unpack_mark
from hubweir.capture.destination import LocalFolder
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.messaging_store.whole_file import read_sealed
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv

LOCAL = CaptureDestination.LOCAL_FOLDER


@pytest.fixture
def world() -> CaptureWorld:
    files = MemoryFiles("intent")
    files.make_folder("log")
    places = CapturePlaces(files, "captured")
    pace = CapturePace()
    return CaptureWorld(SimulatedEnv(0, files=files), Counters(), places, CaptureSlots(pace), ClaimedNames(), pace)


def intend(last_second: int) -> CaptureMark:
    """The next second's name."""
    intent = Intent(0, 1, 10, last_second + 1, f"{last_second + 1}.avro", LOCAL, "")
    return CaptureMark(b"s" * 16, 0, 0, 0, intent=intent)


def test_the_mark_is_durable_when_it_is_given_back(world: CaptureWorld) -> None:
    mark = save_intent(world, "log", "me", intend)
    body = read_sealed(world.env.files, f"log/{MARK_NAME}")
    assert body is not None and unpack_mark(body) == mark


def test_names_of_finished_files_and_of_files_under_way_are_passed_over(world: CaptureWorld) -> None:
    taken = LocalFolder(world.places.files, "captured").begin("1.avro")
    taken.commit()
    assert world.names.claim("other", LOCAL, "", "2.avro")
    mark = save_intent(world, "log", "me", intend)
    assert mark.intent is not None and mark.intent.name == "3.avro"
    assert not world.names.claim("other", LOCAL, "", "3.avro")


def test_a_destination_where_every_name_is_taken_is_a_fault(world: CaptureWorld) -> None:
    for second in range(1, TAKEN_NAMES + 1):
        assert world.names.claim(second, LOCAL, "", f"{second}.avro")
    with pytest.raises(FileExistsError, match="names in a row"):
        save_intent(world, "log", "me", intend)
    assert not world.env.files.exists(f"log/{MARK_NAME}")
