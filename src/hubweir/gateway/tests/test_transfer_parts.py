"""The parts of a transfer hold its messages by their keys, the same each time, and nothing is left out."""

from __future__ import annotations

from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hubweir.broker.commands.forwarding import TransferStored
from hubweir.broker.commands.process import Refusal
from hubweir.errors import RESOURCE_LIMIT, SERVER_BUSY
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.gateway.transfer_parts import Stored, parts_of, stored_of
from hubweir.kernels.stored_batch import FLAG_CONTINUES
from hubweir.messaging_store.record import headers_of
from hubweir.queue.message_key import keyed_records
from hubweir.queue.tests.conftest import message, run_of

NOBODY: Any = None
KEYS = st.sampled_from([None, "a", "b", "c", "d"])


def fragments(count: int) -> Fragments:
    return Fragments(tuple(FragmentPlace("orders", str(at), NOBODY, str(at), None, at) for at in range(count)))


def numbers(*some: int) -> bytes:
    return array("q", some).tobytes()


@given(
    st.lists(st.tuples(KEYS, st.sampled_from(["m1", "m2"])), min_size=1, max_size=12),
    st.sampled_from([2, 16]),
    st.integers(1, 2**50),
    st.booleans(),
)
def test_every_message_is_in_the_part_of_its_fragment_with_what_it_was(
    sent: list[tuple[str | None, str]], count: int, transfer: int, takes_ids: bool
) -> None:
    messages = [message(str(at), message_id=each, key=key) for at, (key, each) in enumerate(sent)]
    many, run = len(messages), bytes(run_of(*messages, size=5))
    origins = numbers(*range(100, 100 + many), *range(200, 200 + many))
    parts = parts_of(run, origins, many, fragments(count), transfer=transfer, takes_ids=takes_ids)
    records = [each.record for each in keyed_records(run, takes_ids=False)]
    expected: dict[int, list[int]] = {}
    for at, (key, each) in enumerate(sent):
        chosen = key if key is not None else each if takes_ids else None
        number = transfer % count if chosen is None else partition_of_key(chosen.encode(), count)
        expected.setdefault(number, []).append(at)
    assert {part.place.number: part.messages for part in parts} == {at: len(some) for at, some in expected.items()}
    for part in parts:
        some = expected[part.place.number]
        assert [each.record for each in keyed_records(part.run, takes_ids=False)] == [records[at] for at in some]
        assert part.origins == numbers(*(100 + at for at in some), *(200 + at for at in some))
        flags = [bool(header.flags & FLAG_CONTINUES) for header in headers_of(part.run)]
        assert flags == [True] * (len(flags) - 1) + [False], "one chain"


def test_a_transfer_to_one_fragment_is_its_only_part_as_it_is() -> None:
    run, origins = bytes(run_of(message("a", key="k"), message("b"))), numbers(1, 2, 3, 4)
    [part] = parts_of(run, origins, 2, fragments(1), transfer=7, takes_ids=False)
    assert (part.place.number, part.messages, part.origins) == (0, 2, origins) and part.run is run
    same = bytes(run_of(message("a", key="k"), message("b", key="k")))
    [part] = parts_of(same, origins, 2, fragments(16), transfer=7, takes_ids=False)
    assert (part.place.number, part.messages, part.origins) == (partition_of_key(b"k", 16), 2, origins)
    assert part.run is same


def test_each_fragment_may_have_a_part_of_what_cannot_be_read() -> None:
    parts = parts_of(b"", b"", 0, fragments(16), transfer=7, takes_ids=False)
    assert [(part.place.number, part.messages) for part in parts] == [(number, 0) for number in range(16)]


def test_what_is_stored_is_known_when_every_fragment_has_said_so() -> None:
    there, elsewhere, full = TransferStored(True), TransferStored(False), Refusal(RESOURCE_LIMIT, "full")
    assert stored_of([there, there]) is Stored.ALL
    assert stored_of([elsewhere]) is stored_of([full, elsewhere]) is Stored.NONE
    assert stored_of([there, elsewhere]) is stored_of([full, there]) is Stored.SOME
    for unknown in (Refusal(RESOURCE_LIMIT, "full, perhaps", known=False), Refusal(SERVER_BUSY, "away")):
        assert stored_of([there, unknown]) is stored_of([unknown]) is Stored.NOBODY_KNOWS
