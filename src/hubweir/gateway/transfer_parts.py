"""The parts of a transfer, where its destination has several fragments: each is stored in the fragment of its messages.

A message goes to the fragment of its key, as one that is sent there does. All that have none go to one fragment, which
the transfer's number chooses: so the parts of a transfer are the same each time that it is offered, and each fragment
knows what it has stored of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.forwarding import TransferStored
from hubweir.broker.commands.process import Refusal
from hubweir.errors import RESOURCE_LIMIT
from hubweir.gateway.destinations import Undeliverable
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.queue.message_key import keyed_records
from hubweir.queue.upkeep import chain_of

# Of a transfer whose messages cannot be read, so that nobody knows which of them make up which part.
HALF_MOVED = Undeliverable(
    "TransferInterrupted",
    "Damage in its log interrupted the forwarding of this message and others: it may be at its destination already.",
)


class Stored(Enum):
    """Which parts of a transfer are stored. NOBODY_KNOWS: of one at least nobody can say."""

    ALL = "all"
    SOME = "some"
    NONE = "none"
    NOBODY_KNOWS = "nobody knows"


def stored_of(answers: Sequence[Answer]) -> Stored:
    """What the answers to StoreTransfer say, one of each fragment. One that is full has stored nothing."""
    there = elsewhere = 0
    for answer in answers:
        if isinstance(answer, TransferStored):
            there += answer.is_stored
            elsewhere += not answer.is_stored
        elif isinstance(answer, Refusal) and answer.known and answer.condition is RESOURCE_LIMIT:
            elsewhere += 1
    if there + elsewhere < len(answers):
        return Stored.NOBODY_KNOWS
    return Stored.SOME if there and elsewhere else Stored.ALL if there else Stored.NONE


class FragmentPart(Struct, frozen=True):
    """What one fragment is to store of a transfer: see StoreTransfer."""

    place: FragmentPlace
    messages: int
    origins: bytes
    run: bytes | bytearray | memoryview


def parts_of(
    run: bytes | memoryview, origins: bytes, messages: int, fragments: Fragments, *, transfer: int, takes_ids: bool
) -> list[FragmentPart]:
    """The parts of a transfer of this number. run, origins, messages: of all of it, see TransferTaken.

    fragments, takes_ids: of its destination. No messages: each fragment may have a part.
    """
    if not fragments.is_partitioned or not messages:
        return [FragmentPart(place, messages, origins, run) for place in fragments.places]
    keyless = fragments.places[transfer % len(fragments.places)]
    ordinals: dict[int, array[int]] = {}
    records: list[bytes] = []
    for ordinal, each in enumerate(keyed_records(run, takes_ids=takes_ids)):
        place = keyless if each.key is None else fragments.of_key(each.key)
        ordinals.setdefault(place.number, array("q")).append(ordinal)
        records.append(each.record)
    if len(ordinals) == 1:
        return [FragmentPart(fragments.places[number], messages, origins, run) for number in ordinals]
    numbers = array("q", origins)
    return [
        FragmentPart(
            fragments.places[number],
            len(some),
            array("q", [numbers[at] for at in (*some, *(messages + at for at in some))]).tobytes(),
            chain_of((), [records[at] for at in some]),
        )
        for number, some in ordinals.items()
    ]
