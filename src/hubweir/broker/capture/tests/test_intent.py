"""An intent has a free name; names that are taken are passed over by seconds, and not for ever."""

from __future__ import annotations

import pytest

from hubweir.alarms import Alarms
from hubweir.broker.capture.intent import TAKEN_NAMES, claim_name, release_name
from hubweir.broker.capture.places import CapturePlaces, CaptureTools
from hubweir.broker.capture.slots import CaptureSlots
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.capture.capture_mark import CaptureMark, Intent
from hubweir.capture.destination import LocalFolder
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv

LOCAL = CaptureDestination.LOCAL_FOLDER


@pytest.fixture
def tools() -> CaptureTools:
    files = MemoryFiles("intent")
    places = CapturePlaces(files, "captured")
    pace = CapturePace()
    env, counters = SimulatedEnv(0, files=files), Counters()
    return CaptureTools(
        env, BrokerDeadlines(env), TrustedClock(env), counters, Alarms(env, counters), places, CaptureSlots(pace), pace
    )


def intend(last_second: int) -> CaptureMark:
    """The next second's name."""
    intent = Intent(0, 1, 10, last_second + 1, f"{last_second + 1}.avro", LOCAL, "")
    return CaptureMark(b"s" * 16, 0, 0, 0, intent=intent)


def test_names_of_finished_files_and_of_files_under_way_are_passed_over(tools: CaptureTools) -> None:
    place = LocalFolder(tools.places.files, "captured")
    place.begin("1.avro").commit()
    assert place.claim("2.avro")
    mark = claim_name(tools, intend)
    assert mark.intent is not None and mark.intent.name == "3.avro"
    assert not place.claim("3.avro")
    assert tools.places.files.list("captured") == ["1.avro", "2.avro.claim", "3.avro.claim"]


def test_a_name_is_free_again_when_it_is_let_go_of(tools: CaptureTools) -> None:
    mark = claim_name(tools, intend)
    assert mark.intent is not None
    release_name(tools.places, mark.intent)
    assert not tools.places.files.list("captured")
    release_name(tools.places, mark.intent)  # twice does nothing


def test_letting_go_in_a_destination_that_is_away_raises_nothing(tools: CaptureTools) -> None:
    blob = Intent(0, 1, 10, 1, "1.avro", CaptureDestination.AZURE_BLOCK_BLOB, "films")
    release_name(tools.places, blob)


def test_a_destination_where_every_name_is_taken_is_a_fault(tools: CaptureTools) -> None:
    place = LocalFolder(tools.places.files, "captured")
    for second in range(1, TAKEN_NAMES + 1):
        assert place.claim(f"{second}.avro")
    with pytest.raises(FileExistsError, match="names in a row"):
        claim_name(tools, intend)
