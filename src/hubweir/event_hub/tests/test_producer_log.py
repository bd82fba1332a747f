"""Producers on disk: what a snapshot and the log say of them, in which order, and what is no such thing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

import pytest

from hubweir.errors import CorruptStore, NewerFormat, ServiceError
from hubweir.event_hub.producer_log import (
    EXPIRED,
    ProducerReplay,
    encode_snapshot,
    fence_body,
    note_key,
    producer_notes,
    restore_snapshot,
)
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import AttachedProducer, Kept, NumberedSend
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, pack_control
from hubweir.messaging_store.log import Appended, Note, Refused, Run
from hubweir.messaging_store.record import Producer, begin_batch, seal_batch

AT_MS = 1_700_000_000_000
PLAIN = Kept(5, 2, 40, AT_MS)
ENDS = Kept(-(2**63), 2**15 - 1, 2**31 - 1, -1)
RESUMING = Kept(2**63 - 1, 0, 3, AT_MS + 1, 2**63 - 1, 2**63 - 1)

State = list[Kept]


def complete(run: bytearray, index: int, at_ms: int = AT_MS) -> bytes:
    complete_run(run, LogEnd(index), nonce=1, enqueued_time_ms=at_ms, durable_upto=0, writer_epoch=1)
    return bytes(run)


def events(producer: Producer | None, count: int, *, index: int) -> bytes:
    run = bytearray()
    start = begin_batch(run, producer=producer)
    run += (b"\0\0\0\x20" + bytes(28)) * count
    seal_batch(run, start, count=count)
    return complete(run, index)


def fence(
    producer_id: int, epoch: int, round: int = 0, *, index: int = 0, at_ms: int = AT_MS, begins: bool = False
) -> Note:
    return Note(note_key(producer_id), fence_body(epoch, round, begins=begins), index, 0, at_ms)


def expired(producer_id: int, *, index: int = 0) -> Note:
    return Note(note_key(producer_id), EXPIRED, index, 0, AT_MS)


def of(*kept: Kept) -> ProducerSequences:
    sequences = ProducerSequences()
    for each in kept:
        sequences.restore(each)
    return sequences


def state(sequences: ProducerSequences) -> State:
    return sorted(sequences.kept(), key=lambda kept: kept.producer_id)


def replay(sequences: ProducerSequences, runs: Iterable[Run], notes: Iterable[Note], from_index: int) -> None:
    its = ProducerReplay(sequences, notes, from_index)
    for run in runs:
        its.visit(run)
    its.end()


def replayed(log: Iterable[bytes | Note], *known: Kept, from_index: int = 0) -> State:
    sequences = of(*known)
    log = list(log)
    runs = [Run(piece, 0, 0) for piece in log if isinstance(piece, bytes)]
    replay(sequences, runs, [note for note in log if isinstance(note, Note)], from_index)
    return state(sequences)


@pytest.mark.parametrize(("kept", "version"), [((), 1), ((PLAIN, ENDS), 1), ((PLAIN, RESUMING, ENDS), 2)])
def test_a_snapshot_brings_back_what_it_was_made_of(kept: tuple[Kept, ...], version: int) -> None:
    snapshot = encode_snapshot(of(*kept))
    assert snapshot[0] == version
    restored = ProducerSequences()
    restore_snapshot(restored, snapshot)
    assert state(restored) == state(of(*kept))


def test_every_byte_of_a_snapshot_means_something() -> None:
    snapshot = encode_snapshot(of(PLAIN, RESUMING))
    for at in range(1, len(snapshot)):
        changed, restored = bytearray(snapshot), ProducerSequences()
        changed[at] ^= 1
        restore_snapshot(restored, bytes(changed))
        assert state(restored) != state(of(PLAIN, RESUMING)), f"byte {at} is read by nobody"


@pytest.mark.parametrize("kept", [PLAIN, RESUMING])
def test_a_snapshot_that_is_cut_or_of_another_version_is_refused_and_restores_nothing(kept: Kept) -> None:
    snapshot, restored = encode_snapshot(of(kept)), ProducerSequences()
    for end in range(2, len(snapshot)):
        with pytest.raises(CorruptStore, match=f"has {end} bytes"):
            restore_snapshot(restored, snapshot[:end])
    for other in (b"", b"\x00" + snapshot[1:], b"\x03" + snapshot[1:]):
        with pytest.raises(NewerFormat, match="reads up to 2"):
            restore_snapshot(restored, other)
    assert state(restored) == []


def test_batches_and_notes_are_applied_by_their_index_and_marks_and_plain_events_say_nothing() -> None:
    log = [
        fence(6, 1, 4, index=5, at_ms=AT_MS + 7),
        events(Producer(5, 2, 1), 3, index=0),
        complete(pack_control(CONTROL_IDLE_MARK, b"\x00"), 3),
        Note(b"capture", b"of another owner", 3, 0, AT_MS),
        events(None, 2, index=3),
        events(Producer(5, 2, 4, 0, 0), 1, index=5),
    ]
    assert replayed(log) == [Kept(5, 2, 4, AT_MS), Kept(6, 1, 0, AT_MS + 7, 4)]
    whole = b"".join(piece for piece in log if isinstance(piece, bytes))
    assert replayed([whole, log[0]]) == replayed(log), "a run may hold many batches"
    back = events(Producer(6, 0, 9), 1, index=6)
    assert replayed([*log[1:], back, expired(5, index=6), expired(6, index=6)]) == [Kept(6, 0, 9, AT_MS)]
    assert replayed([*log[1:], back, expired(5, index=6), expired(6, index=7)]) == []


def test_what_stands_before_the_index_of_the_snapshot_is_in_it() -> None:
    log = [events(Producer(5, 0, 1), 3, index=0), fence(5, 9, index=2), events(Producer(7, 0, 1), 1, index=3)]
    newer = Kept(5, 1, 8, AT_MS)
    assert replayed(log, newer, from_index=3) == [newer, Kept(7, 0, 1, AT_MS)]
    assert replayed(log, newer, from_index=0) == [Kept(5, 9, 3, AT_MS), Kept(7, 0, 1, AT_MS)]
    at_it = fence(5, 9, index=3)
    assert replayed([log[0], at_it], newer, from_index=3) == [Kept(5, 9, 8, AT_MS)]


def test_a_fence_that_begins_takes_the_place_of_all_that_was_known_and_any_other_raises_its_epoch() -> None:
    known = Kept(5, 7, 40, AT_MS, 3, 99)
    assert replayed([fence(5, 1, 2, begins=True)], known) == [Kept(5, 1, 0, AT_MS, 2)]
    assert replayed([fence(5, 1, 2)], known) == [known]
    assert replayed([fence(5, 8, 3)], known) == [Kept(5, 8, 40, AT_MS, 3, 99)]
    assert replayed([fence(5, 0, 4)], known) == [Kept(5, 0, 0, AT_MS, 4)]


@pytest.mark.parametrize("size", [1, 12, 14])
def test_a_fence_of_another_length_is_damage_and_the_log_before_it_is_applied(size: int) -> None:
    sequences = ProducerSequences()
    wrong = Note(note_key(6), bytes(size), 4, 0, AT_MS)
    with pytest.raises(CorruptStore, match=f"has {size} bytes, not 13"):
        replay(sequences, [Run(events(Producer(5, 0, 1), 4, index=0), 0, 4)], [wrong], 0)
    assert [kept.producer_id for kept in sequences.kept()] == [5]


@pytest.mark.parametrize("producer_id", [5, -(2**63), 2**63 - 1])
def test_notes_of_producers_are_told_from_those_of_others(producer_id: int) -> None:
    its = fence(producer_id, 1)
    others = [Note(key, b"", 0, 0, 0) for key in (b"capture", b"p", b"q" + bytes(8), b"p" + bytes(9), b"")]
    assert producer_notes([*others, its]) == [its]


# -- any history, from any snapshot, with the newest note of each producer


class History:
    """Producers at work on a log that takes what it is given, a while later; what it holds, and snapshots of theirs."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.sequences = ProducerSequences()
        self.index = self.visible = 0
        self.log: list[bytes] = []
        self.notes: list[Note] = []
        self.snapshots: list[tuple[int, bytes]] = [(0, encode_snapshot(self.sequences))]
        self.under_way: list[Callable[[], None]] = []
        self.openings: dict[int, tuple[int, int, int]] = {}  # opening -> producer, epoch, round
        for opening in range(1, 40):
            self.act(opening)
        self.settle()

    def act(self, opening: int) -> None:
        chance = self.draw.random()
        if chance < 0.35:
            self.open(opening)
        elif chance < 0.7 and self.openings:
            self.send(self.draw.choice(sorted(self.openings)))
        elif chance < 0.8:
            self.settle()
        elif chance < 0.9:
            self.expire()
        else:
            self.snapshots.append((self.visible, encode_snapshot(self.sequences)))

    def open(self, opening: int) -> None:
        producer_id, round = self.draw.randrange(1, 4), self.draw.choice([0, 0, 1, 2, 3])
        epoch = None if round else self.draw.choice([None, 0, 1, 2, 5])
        try:
            opened = self.sequences.open(
                opening, producer_id=producer_id, epoch=epoch, number=None, new_id=lambda: 0,
                expire=lambda ids: None, round=round,
            )  # fmt: skip
        except ServiceError:
            return
        self.openings[opening] = producer_id, opened.epoch, round
        if opened.needs_fence:
            self.notes.append(fence(producer_id, opened.epoch, round, index=self.index, begins=opened.begins))
            self.sequences.fencing(opened, round=round, time_ms=AT_MS)
            self.under_way.append(lambda: self.fenced(opened, round))

    def fenced(self, opened: AttachedProducer, round: int) -> None:
        self.sequences.fenced(opened, number=None, round=round, time_ms=AT_MS)

    def send(self, opening: int) -> None:
        producer_id, epoch, round = self.openings[opening]
        known = self.sequences._producers.get(producer_id)
        first = 1 if known is None else known.last + 1
        count, digest = self.draw.randrange(1, 4), self.draw.randrange(9)

        def append(on_stored: Callable[[Appended | Refused], None]) -> Appended:
            at, self.index = self.index, self.index + count
            self.log.append(events(Producer(producer_id, epoch, first, round, digest), count, index=at))
            appended = Appended(at, at + count, 0, 0, AT_MS)
            self.under_way.append(lambda: self.stored(on_stored, appended))
            return appended

        with suppress(ServiceError):
            sent = NumberedSend(producer_id, epoch, first, count, round, digest)
            self.sequences.send(opening, sent, append, lambda outcome: None)

    def stored(self, on_stored: Callable[[Appended | Refused], None], appended: Appended) -> None:
        self.visible = appended.next_index
        on_stored(appended)

    def settle(self) -> None:
        under_way, self.under_way = self.under_way, []
        for step in under_way:
            step()

    def expire(self) -> None:
        self.settle()  # a link that goes before its fence was answered leaves a fence that nobody knows of
        for opening in self.draw.sample(sorted(self.openings), len(self.openings) // 2):
            self.sequences.close(opening)
            del self.openings[opening]
        for producer_id in self.sequences.expired(AT_MS + 2**50)[: self.draw.randrange(1, 4)]:
            self.notes.append(expired(producer_id, index=self.index))
            self.sequences.drop([producer_id])

    def restored(self, snapshot: tuple[int, bytes], notes: list[Note]) -> State:
        from_index, saved = snapshot
        sequences = ProducerSequences()
        restore_snapshot(sequences, saved)
        replay(sequences, [Run(b"".join(self.log), 0, self.index)], notes, from_index)
        return state(sequences)


def newest_of_each(notes: list[Note]) -> list[Note]:
    return list({note.key: note for note in notes}.values())


def differing(kept: Callable[[list[Note]], list[Note]]) -> int:
    """From how many snapshots of many histories a start does not find the producers as they were."""
    different = 0
    for seed in range(400):
        history = History(seed)
        found = state(history.sequences)
        different += sum(history.restored(each, kept(history.notes)) != found for each in history.snapshots)
    return different


def without_begins(notes: list[Note]) -> list[Note]:
    """The planted defect: no fence says that nothing of its round was stored."""
    return [note if note.body == EXPIRED else replace(note, body=note.body[:-1] + b"\0") for note in notes]


def test_a_start_finds_the_producers_by_any_snapshot_the_log_and_the_newest_note_of_each() -> None:
    assert differing(newest_of_each) == 0


@pytest.mark.parametrize(
    "defect",
    [
        lambda notes: newest_of_each(notes[::-1]),
        lambda notes: [note for note in newest_of_each(notes) if note.body != EXPIRED],
        lambda notes: [note for note in newest_of_each(notes) if note.body == EXPIRED],
        lambda notes: without_begins(newest_of_each(notes)),
    ],
    ids=["the oldest", "no expiry", "no fence", "no begin"],
)
def test_control_a_note_that_is_missing_or_says_less_is_found(defect: Callable[[list[Note]], list[Note]]) -> None:
    assert differing(defect) > 20
