"""Producers on disk: what a snapshot and the log say of them, in which order, and what is no such thing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.event_hub.producer_log import encode_snapshot, expired_body, fence_body, replay, restore_snapshot
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import Kept
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import (
    CONTROL_EXPIRED_PRODUCERS,
    CONTROL_IDLE_MARK,
    CONTROL_PRODUCER_FENCE,
    FENCED_ID_SIZE,
    pack_control,
)
from hubweir.messaging_store.log import Run
from hubweir.messaging_store.record import Producer, begin_batch, seal_batch

AT_MS = 1_700_000_000_000
PLAIN = Kept(5, 2, 40, AT_MS)
ENDS = Kept(-(2**63), 2**15 - 1, 2**31 - 1, -1)
RESUMING = Kept(2**63 - 1, 0, 3, AT_MS + 1, 2**63 - 1, 2**63 - 1)

State = list[Kept]


def complete(run: bytearray, index: int, at_ms: int = AT_MS) -> bytes:
    complete_run(
        run, nonce=1, first_index=index, first_offset=0, enqueued_time_ms=at_ms, durable_upto=0, writer_epoch=1
    )  # fmt: skip
    return bytes(run)


def events(producer: Producer | None, count: int, *, index: int) -> bytes:
    run = bytearray()
    start = begin_batch(run, producer=producer)
    run += (b"\0\0\0\x20" + bytes(28)) * count
    seal_batch(run, start, count=count)
    return complete(run, index)


def fence(producer_id: int, epoch: int, round: int = 0, *, index: int = 0, at_ms: int = AT_MS) -> bytes:
    return complete(pack_control(CONTROL_PRODUCER_FENCE, fence_body(producer_id, epoch, round)), index, at_ms)


def expired(*producer_ids: int, index: int = 0) -> bytes:
    return complete(pack_control(CONTROL_EXPIRED_PRODUCERS, expired_body(producer_ids)), index)


def of(*kept: Kept) -> ProducerSequences:
    sequences = ProducerSequences()
    for each in kept:
        sequences.restore(each)
    return sequences


def state(sequences: ProducerSequences) -> State:
    return sorted(sequences.kept(), key=lambda kept: kept.producer_id)


def replayed(log: Iterable[bytes], *known: Kept, from_index: int = 0) -> State:
    sequences = of(*known)
    replay(sequences, [Run(piece, 0, 0) for piece in log], from_index)
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


def test_the_log_is_applied_in_its_order_and_other_control_batches_and_plain_events_say_nothing() -> None:
    log = [
        events(Producer(5, 2, 1), 3, index=0),
        complete(pack_control(CONTROL_IDLE_MARK, b"\x00"), 3),
        events(None, 2, index=3),
        fence(6, 1, 4, index=5, at_ms=AT_MS + 7),
        events(Producer(5, 2, 4, 0, 0), 1, index=5),
    ]
    assert replayed(log) == [Kept(5, 2, 4, AT_MS), Kept(6, 1, 0, AT_MS + 7, 4)]
    assert replayed([b"".join(log)]) == replayed(log), "a run may hold many batches"
    gone, back = expired(5, 6, index=6), events(Producer(6, 0, 9), 1, index=6)
    assert replayed([*log, gone, back]) == [Kept(6, 0, 9, AT_MS)]
    assert replayed([*log, back, gone]) == []


def test_events_before_the_index_of_the_snapshot_are_in_it_and_control_batches_are_applied_again() -> None:
    log = [events(Producer(5, 0, 1), 3, index=0), fence(5, 1, index=3), events(Producer(7, 0, 1), 1, index=3)]
    newer = Kept(5, 1, 8, AT_MS)
    assert replayed(log, newer, from_index=3) == [newer, Kept(7, 0, 1, AT_MS)]
    assert replayed(log, newer, from_index=0) != replayed(log, newer, from_index=3)


@pytest.mark.parametrize("size", [0, FENCED_ID_SIZE, 19, 21])
def test_a_fence_of_another_length_is_damage_and_what_came_before_it_is_applied(size: int) -> None:
    sequences = ProducerSequences()
    wrong = complete(pack_control(CONTROL_PRODUCER_FENCE, bytes(size)), 0)
    with pytest.raises(CorruptStore, match=f"has {size} bytes, not 20"):
        replay(sequences, [Run(fence(5, 1), 0, 0), Run(wrong, 0, 0), Run(fence(6, 1), 0, 0)], 0)
    assert [kept.producer_id for kept in sequences.kept()] == [5]


# -- what the store leaves out of a segment that it takes over (messaging_store/carried_over.py)

Said = tuple[int | None, bytes]  # the producer of a fence, None for who was expired; the batch


def test_a_fence_begins_with_its_producers_id_where_the_store_looks_for_it() -> None:
    assert [fence_body(producer_id, 1, 2)[:FENCED_ID_SIZE] for producer_id in (5, -(2**63), 2**63 - 1)] == [
        producer_id.to_bytes(FENCED_ID_SIZE, "big", signed=True) for producer_id in (5, -(2**63), 2**63 - 1)
    ]


def newest_of_each(said: Sequence[Said]) -> list[Said]:
    """Without the fences that a later one of the same producer follows."""
    last = {producer: place for place, (producer, _) in enumerate(said)}
    return [entry for place, entry in enumerate(said) if entry[0] is None or last[entry[0]] == place]


def oldest_of_each(said: Sequence[Said]) -> list[Said]:
    """The planted defect."""
    return newest_of_each(said[::-1])[::-1]


def history(seed: int) -> tuple[list[Kept], list[Said]]:
    """A snapshot, and fences behind it as opens write them: round and epoch never fall unless one was expired."""
    draw = random.Random(seed)
    known = {each: (draw.randrange(3), draw.randrange(3)) for each in draw.sample(range(4), draw.randrange(5))}
    snapshot = [Kept(each, epoch, draw.randrange(5), AT_MS, round) for each, (round, epoch) in known.items()]
    said: list[Said] = []
    for _ in range(draw.randrange(1, 12)):
        each = draw.randrange(4)
        if draw.randrange(4) == 0:
            known.pop(each, None)
            said.append((None, expired(each)))
            continue
        round, epoch = known.get(each, (draw.randrange(2), draw.randrange(2)))
        known[each] = (round + 1, 0) if draw.randrange(3) == 0 else (round, epoch + 1)
        said.append((each, fence(each, known[each][1], known[each][0])))
    return snapshot, said


def differing(left: Callable[[Sequence[Said]], list[Said]]) -> int:
    """In how many histories what is left says something else than all of it."""
    different = 0
    for seed in range(300):
        snapshot, said = history(seed)
        whole = replayed([batch for _, batch in said], *snapshot)
        different += replayed([batch for _, batch in left(said)], *snapshot) != whole
    return different


def test_the_newest_fence_of_a_producer_says_all_that_those_before_it_said() -> None:
    assert differing(newest_of_each) == 0
    assert differing(oldest_of_each) > 50, "the check finds a defect"
    assert differing(lambda said: [entry for entry in said if entry[0] is not None]) > 50


def batch(
    producer_id: int, first: int, count: int, *, index: int, epoch: int = 0, round: int = 0, digest: int = 0
) -> bytes:
    """A batch of one producer's, which says all of its numbers."""
    return events(Producer(producer_id, epoch, first, round, digest), count, index=index)


def test_the_log_from_a_snapshot_on_gives_the_same_producers() -> None:
    gone = expired(8, 99, index=6)
    pieces = [batch(7, 1, 3, index=0), batch(8, 1, 2, index=3), batch(9, 5, 1, index=5, epoch=2), gone]
    pieces.append(batch(7, 4, 2, index=6, epoch=1))
    whole = ProducerSequences()
    replay(whole, [Run(b"".join(pieces), 0, 8)], 0)
    assert whole.kept() == [Kept(7, 1, 5, AT_MS), Kept(9, 2, 5, AT_MS)]
    half = ProducerSequences()
    replay(half, [Run(b"".join(pieces[:3]), 0, 6)], 0)
    rest = ProducerSequences()
    restore_snapshot(rest, encode_snapshot(half))
    assert rest.kept() == half.kept()
    replay(rest, [Run(b"".join(pieces), 0, 8)], 6)
    assert sorted(rest.kept(), key=lambda kept: kept.producer_id) == whole.kept()


def test_fences_rounds_and_digests_are_replayed_and_snapshotted() -> None:
    pieces = [
        fence(7, 0, 5, index=0), batch(7, 1, 3, index=0, round=5, digest=77), fence(7, 1, 5, index=3),
        fence(8, 4, 0, index=3), batch(9, 1, 1, index=3), fence(9, 2, 0, index=4), fence(7, 0, 6, index=4),
        batch(7, 1, 1, index=4, round=6, digest=88),
    ]  # fmt: skip
    resuming, eighth, ninth = Kept(7, 1, 3, AT_MS, 5, 77), Kept(8, 4, 0, AT_MS), Kept(9, 2, 1, AT_MS)
    expected = [
        [],
        [Kept(7, 0, 0, AT_MS, 5)],
        [Kept(7, 0, 3, AT_MS, 5, 77)],
        [resuming],
        [resuming, eighth],
        [resuming, eighth, Kept(9, 0, 1, AT_MS)],
        [resuming, eighth, ninth],
        [Kept(7, 0, 0, AT_MS, 6), eighth, ninth],
        [Kept(7, 0, 1, AT_MS, 6, 88), eighth, ninth],
    ]
    starts = [0, 0, 3, 3, 3, 4, 4, 4, 5]
    for upto, kept in enumerate(expected):
        half = ProducerSequences()
        replay(half, [Run(b"".join(pieces[:upto]), 0, 5)], 0)
        assert half.kept() == kept
        rest = ProducerSequences()
        restore_snapshot(rest, encode_snapshot(half))
        assert rest.kept() == kept
        # Replay begins with whatever stands at the snapshot's index, be it in the snapshot or not.
        replay(rest, [Run(b"".join(pieces), 0, 5)], starts[upto])
        assert sorted(rest.kept(), key=lambda kept: kept.producer_id) == expected[-1]
