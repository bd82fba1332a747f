"""The mark: comes back as it was, refuses what it is not, is replaced as a whole."""

from __future__ import annotations

import msgspec
import pytest

from hubweir.capture.capture_mark import MARK_KEY, CaptureMark, Intent, note_mark, pack_mark, unpack_mark
from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import SimulatedEnv

INTENT = Intent(7, 19, 4_000, 1_700_000_000, "a/b.avro", CaptureDestination.AZURE_BLOCK_BLOB, "films")
MARK = CaptureMark(b"s" * 16, 7, 2_000, 1_600_000_000_000, 12, INTENT, "a/a.avro", 3, 5, ((1, 3), (4, 7)))


@pytest.mark.parametrize("mark", [MARK, CaptureMark(b"", 0, 0, 0), msgspec.structs.replace(MARK, intent=None)])
def test_a_mark_comes_back_as_it_was(mark: CaptureMark) -> None:
    assert unpack_mark(pack_mark(mark)) == mark


def test_fields_that_a_later_version_adds_are_passed_over() -> None:
    body = msgspec.msgpack.decode(pack_mark(MARK)[1:])
    assert unpack_mark(b"\x01" + msgspec.msgpack.encode({**body, "later": 1})) == MARK


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(NewerFormat, match="format 2"):
        unpack_mark(b"\x02" + pack_mark(MARK)[1:])


def test_no_part_of_a_mark_is_a_mark() -> None:
    whole = pack_mark(MARK)
    for end in range(len(whole)):
        with pytest.raises(CorruptStore):
            unpack_mark(whole[:end])


def test_sync_markers_depend_on_the_seed_and_the_first_event_only() -> None:
    other = msgspec.structs.replace(MARK, last_file="x", files=9)
    assert MARK.sync_marker(7) == other.sync_marker(7)
    assert len({MARK.sync_marker(7), MARK.sync_marker(8), CaptureMark(b"t" * 16, 7, 0, 0).sync_marker(7)}) == 3
    assert len(MARK.sync_marker(7)) == 16


def test_a_sync_marker_is_the_same_for_every_version() -> None:
    """A file that one version began is made again by the next one, with the same bytes."""
    assert CaptureMark(bytes(16), 7, 0, 0).sync_marker(258).hex() == "bfbd46f9e48dd89b647e9c8ed89d2c67"


def test_a_noted_mark_survives_a_power_cut_and_can_be_taken_back() -> None:
    env = SimulatedEnv(1)
    answers: list[Refused | None] = []
    for mark in (MARK, None):
        log = made_log(env, MessagingStore.open(env, "store-0"), "ab" * 16)
        note_mark(log, mark, now_ms=7, on_done=answers.append)
        env.run_for(100)
        env.crash(power_cut=True)
        env = env.restart()
        log = made_log(env, MessagingStore.open(env, "store-0"), "ab" * 16)
        found = log.notes.get(MARK_KEY)
        assert mark == (found and unpack_mark(found.body))
        env.crash()
        env = env.restart()
    assert answers == [None, None]


def test_a_log_that_refuses_a_mark_at_once_says_why() -> None:
    env = SimulatedEnv(1)
    answers: list[Refused | None] = []
    log = made_log(env, MessagingStore.open(env, "store-0"), "ab" * 16)
    log.close(lambda: None)
    note_mark(log, MARK, now_ms=7, on_done=answers.append)
    [refused] = answers
    assert isinstance(refused, Refused) and refused.known and "closed" in str(refused.error)
