"""The state of a topic, as its log says it: messages that are to be copied, and each subscription with what it has.

`apply_run` takes in a run that has just become visible, or one of a replay. Of a run that holds nothing but what one
fragment appended for itself, the fragment takes in its own operations; so live, only chains of the topic come here.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.kernels.stored_batch import KIND_EVENTS, BatchHeader
from hubweir.messaging_store.operations import operations_in
from hubweir.messaging_store.record import headers_of
from hubweir.queue.arrived_records import ChangedRecord, Data, changed_records
from hubweir.queue.fragment_snapshot import decode_snapshot
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.message_table import HeldBytes
from hubweir.queue.operation import decode_operation
from hubweir.topic.topic_operation import (
    ADDED,
    CHANGED,
    COPIED,
    FIRST_CODE,
    FIRST_PLACE,
    PARTLY,
    REMOVED,
    Place,
    TopicOperation,
    decode_topic_operation,
)

VERSION = 1
_HEAD = struct.Struct(">BIQI")
_VIEW = struct.Struct(">IHQ")
_PARTLY = struct.Struct(">QII")


class SubscriptionState(Struct, frozen=True, eq=False):
    """One subscription in the log, and what its fragment has."""

    subscription_id: str
    state: FragmentState


class TopicState:
    """See the module's text. own: the topic's messages. subscriptions: by number. next_number: of the next one.

    held: by all subscriptions together.
    places: by count, how far those messages are copied that are too much for one chain.
    """

    def __init__(self) -> None:
        self.own = FragmentState(keeps_sessions=True)
        self.subscriptions: dict[int, SubscriptionState] = {}
        self.held = HeldBytes()
        self.next_number = 1
        self.places: dict[int, Place] = {}
        self._passed_over = 0  # so many of COPIED that are to come were there before
        # Copies whose records are to come; then those whose records came, by subscription and the topic's count.
        self._awaited: deque[tuple[int, int]] = deque()
        self._changed: dict[int, dict[int, list[ChangedRecord]]] = {}
        self._moving: FragmentState | None = None  # the subscription whose records come again

    def add_subscription(self, number: int, subscription_id: str, state: FragmentState) -> None:
        """Have this subscription."""
        self.subscriptions[number] = SubscriptionState(subscription_id, state)
        state.messages.count_into(self.held)

    def number_of(self, subscription_id: str) -> int | None:
        """The number of a subscription; None when it is not there."""
        for number, each in self.subscriptions.items():
            if each.subscription_id == subscription_id:
                return number
        return None

    def apply_run(self, data: Data, *, is_replay: bool, from_index: int = 0) -> None:
        """Take in every batch of a run that begins at an index or behind it."""
        for header in headers_of(data):
            if header.first_index < from_index:
                continue
            if header.kind == KIND_EVENTS:
                self._take_messages(data, header)
            else:
                for record in operations_in(data, header):
                    if not len(record) or record[0] < FIRST_CODE:
                        self.own.apply(decode_operation(record), is_replay=is_replay)
                    else:
                        self._apply(decode_topic_operation(record), is_replay=is_replay)

    def _apply(self, operation: TopicOperation, *, is_replay: bool) -> None:
        code = operation.code
        if code == ADDED:
            (number,) = operation.numbers
            self.add_subscription(number, operation.subscription_id, FragmentState())
            self.next_number = max(self.next_number, number + 1)
        elif code == REMOVED:
            found = self.subscriptions.pop(operation.numbers[0], None)
            if found is not None:
                found.state.messages.count_into(None)
        elif code == CHANGED:
            self._awaited.extend(operation.copies)
            self._changed = {}
        elif code == PARTLY:
            place, next_place = operation.places
            count = operation.ranges[0]
            is_next = self.own.messages.find(count) is not None and self.places.get(count, FIRST_PLACE) == place
            if is_next:
                self.places = {each: its for each, its in self.places.items() if self.own.messages.find(each)}
                self.places[count] = next_place
            self._passed_over = 0 if is_next else operation.many
        elif code == COPIED and self._passed_over:
            self._passed_over -= 1
        elif code == COPIED:
            for number in operation.numbers:
                found = self.subscriptions.get(number)
                if found is not None:  # else it was removed while this was on its way
                    found.state.copy_messages(self.own, operation.ranges, self._changed.get(number, {}))
        else:
            # A subscription may have said something when its end was on its way. Nobody has what that is of; so nobody
            # gets the records either that it moved.
            found = self.subscriptions.get(operation.numbers[0])
            state = FragmentState() if found is None else found.state
            state.apply(decode_operation(memoryview(operation.inner)), is_replay=is_replay)
            if state.is_moving:
                self._moving = state

    def _take_messages(self, data: Data, header: BatchHeader) -> None:
        """A batch of messages: records of copies, records that were moved, or what was sent."""
        if self._awaited:
            records = changed_records(data, header)
            if len(records) > len(self._awaited):
                raise CorruptStore(f"the batch of index {header.first_index} has copies that nobody named")
            for record in records:
                number, count = self._awaited.popleft()
                self._changed.setdefault(number, {}).setdefault(count, []).append(record)
            return
        state = self._moving if self._moving is not None and self._moving.is_moving else self.own
        state.take_messages(data, header)


# Snapshots: version 1, next number 4, bytes of the topic's own state 8, how many subscriptions 4, that state; for each
# subscription its number 4, bytes of its id 2, bytes of its state 8, both; then of each message that is copied partly
# its count 8 and its place 8 (topic_operation.py). States are those of fragment_snapshot.py.


def encode_topic(state: TopicState, encode: Callable[[int | None], bytes]) -> bytes:
    """The state as of the visible end of the log. encode: the state of a subscription, or with None the topic's own."""
    own = encode(None)
    out = bytearray(_HEAD.pack(VERSION, state.next_number, len(own), len(state.subscriptions)) + own)
    for number, each in state.subscriptions.items():
        identity, inner = each.subscription_id.encode(), encode(number)
        out += _VIEW.pack(number, len(identity), len(inner)) + identity + inner
    for count, place in state.places.items():
        out += _PARTLY.pack(count, *place)
    return bytes(out)


def decode_topic(data: bytes) -> TopicState:
    """The state that was encoded. NewerFormat; CorruptStore when it is none."""
    if data[:1] != bytes((VERSION,)):
        raise NewerFormat(f"the snapshot of a topic has format {data[:1].hex()}; this version reads {VERSION}")
    state = TopicState()
    try:
        _, state.next_number, size, many = _HEAD.unpack_from(data)
        at = _HEAD.size + size
        state.own = decode_snapshot(data[_HEAD.size : at], keeps_sessions=True)
        for _ in range(many):
            number, id_size, size = _VIEW.unpack_from(data, at)
            at += _VIEW.size
            identity, at = data[at : at + id_size].decode(), at + id_size
            state.add_subscription(number, identity, decode_snapshot(data[at : at + size]))
            at += size
        for count, number, made in _PARTLY.iter_unpack(data[at:]):
            state.places[count] = number, made
    except (struct.error, ValueError) as error:
        raise CorruptStore(f"the snapshot of a topic, of {len(data)} bytes, is none") from error
    return state
