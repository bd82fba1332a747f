"""Chooses the fragment of a partitioned entity that takes what is sent: that of its key, or else the next in turn.

The key of a message is its session id, else its partition key, else its message id where duplicates are detected.
Messages of one key go to one fragment for ever, and are refused while that is away; what has no key goes to the next
fragment that is up (fragment_turn.py): all that came in one turn of the loop to one of them. A batch is stored whole in
one fragment, so the keys of its messages have to mean the same.

Kernels find the keys and sort deliveries by them, so nothing here is done for each message.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from msgspec import Struct

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.env import Env
from hubweir.errors import ENTITY_MOVED, NOT_ALLOWED, SERVER_BUSY, STORE_OFFLINE, ServiceError
from hubweir.event_hub.open_run import OpenRun
from hubweir.gateway.append_queue import AppendQueue, LogQueue
from hubweir.gateway.fragment_turn import FragmentTurn
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.kernels import find_message_keys, group_deliveries
from hubweir.kernels.contract import (
    DELIVERY_WIDTH,
    K_HASH,
    K_WHERE,
    KEY_MALFORMED,
    KEY_MESSAGE,
    KEY_SCATTERED,
    KEY_WIDTH,
)
from hubweir.queue.message_key import keys_in

Readable = bytes | bytearray | memoryview


class Share(Struct, frozen=True):
    """The delivery rows rows[first:last], which go to one queue."""

    queue: LogQueue[EnqueueMessages]
    rows: array[int]
    first: int
    last: int


class Sorted(Struct, frozen=True):
    """Deliveries by where they go. scattered: the rows, of those that were given, that go nowhere."""

    shares: Sequence[Share]
    scattered: Sequence[int] = ()


class FragmentChoice:
    """Of one entity of several fragments, in one process. takes_ids: a message id is a key, too.

    queues: what brings runs to fragments. Whatever is given here was looked at with check_messages, and is taken.
    """

    def __init__(
        self, env: Env, fragments: Fragments, queues: AppendQueue[EnqueueMessages], *, takes_ids: bool
    ) -> None:
        self._fragments = fragments
        self._takes_ids = takes_ids
        self._queues = tuple(queues.of(KeyedPlace(place)) for place in fragments.places)
        self._turn = FragmentTurn(env, fragments)
        self._keyless = queues.of(self._turn)
        self.turn_id = self._turn.log_id  # of the queue of what has no key

    def sort(self, data: Readable, rows: array[int], first: int, last: int) -> Sorted:
        """Where each of the deliveries rows[first:last] goes, those of one key in their order."""
        many = len(self._queues)
        keys = array("q", bytes(8 * KEY_WIDTH * (last - first)))
        without, refused = find_message_keys(data, rows, first, last, self._takes_ids, many, keys)
        if without == last - first:
            return Sorted((Share(self._keyless, rows, first, last),))
        if refused:
            return self._without_refused(data, rows, first, keys)
        grouped, ends = array("q", bytes(8 * DELIVERY_WIDTH * (last - first))), array("q", bytes(8 * (many + 1)))
        group_deliveries(rows, first, last, keys, array("q", [many]) * without, grouped, ends)
        starts = (0, *ends)
        return Sorted(
            [
                Share(queue, grouped, start, end)
                for queue, start, end in zip((*self._queues, self._keyless), starts, ends, strict=False)
                if end > start
            ]
        )

    def _without_refused(self, data: Readable, rows: array[int], first: int, keys: array[int]) -> Sorted:
        """The same of deliveries of which some go nowhere."""
        kept, scattered = array("q"), []
        for row, where in enumerate(keys[K_WHERE::KEY_WIDTH], first):
            if where in (KEY_MALFORMED, KEY_SCATTERED):
                scattered.append(row)
            else:
                kept += rows[row * DELIVERY_WIDTH : (row + 1) * DELIVERY_WIDTH]
        shares = self.sort(data, kept, 0, len(kept) // DELIVERY_WIDTH).shares if kept else ()
        return Sorted(shares, scattered)

    def queue_of(self, data: Readable, rows: array[int]) -> LogQueue[EnqueueMessages]:
        """Where one delivery goes. Raises ServiceError NOT_ALLOWED."""
        found = self.sort(data, rows, 0, 1)
        if found.scattered:
            raise self.scattered()
        return found.shares[0].queue

    def place_of(self, data: Readable, rows: array[int], first: int, last: int) -> FragmentPlace:
        """The fragment for deliveries that are to lie in one. Raises ServiceError NOT_ALLOWED where none is right."""
        keys = array("q", bytes(8 * KEY_WIDTH * (last - first)))
        _, refused = find_message_keys(data, rows, first, last, self._takes_ids, len(self._queues), keys)
        hashes = zip(keys[K_WHERE::KEY_WIDTH], keys[K_HASH::KEY_WIDTH], strict=True)
        numbers = {abs(hashed) % len(self._queues) for where, hashed in hashes if where == KEY_MESSAGE}
        if refused or len(numbers) > 1:
            raise self.scattered()
        return self._fragments.places[numbers.pop()] if numbers else self._turn.next_place()

    def transaction_key(self, data: Readable, rows: array[int], first: int, last: int) -> bytes:
        """The one key of deliveries that are sent in a transaction. Raises ServiceError NOT_ALLOWED: P11 and P12."""
        run = OpenRun(names_keys=False)
        run.add_deliveries(data, rows, first, last)
        keys = set(keys_in(run.take_run(), takes_ids=self._takes_ids))
        if None in keys or not keys:
            text = (
                f"'{self._fragments.entity}' is partitioned: what is sent to it in a transaction needs a partition key "
                f"or a session id{', or a message id' if self._takes_ids else ''}."
            )
            raise ServiceError(NOT_ALLOWED, text)
        if len(keys) > 1:
            raise several_keys(self._fragments.entity)
        return keys.pop() or b""

    def of_key(self, key: bytes) -> FragmentPlace:
        """Where messages of a key are."""
        return self._fragments.of_key(key)

    def told(self, answer: Answer) -> Answer:
        """An answer as clients are told it: a fragment that is away is worth another try. (P9)"""
        return _told(self._fragments.entity, answer)

    def scattered(self) -> ServiceError:
        """Why messages that come together are not taken."""
        text = (
            f"Messages that are sent together to '{self._fragments.entity}', which is partitioned, are stored in one "
            "fragment, and these have keys of several: give them one partition key or session id, or send them apart."
        )
        return ServiceError(NOT_ALLOWED, text)


class KeyedPlace:
    """A fragment as those see it whose keys lead there: while it is away they are told what they try again upon. (P9)

    It stands for the fragment's place (append_queue.LogPlace), and for its broker.
    """

    def __init__(self, place: FragmentPlace) -> None:
        self._place = place
        self.entity = place.entity
        self.log_id = place.log_id
        self.store = place.store

    @property
    def broker(self) -> KeyedPlace:
        """Who takes what is stored here."""
        return self

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """Have a run stored. See BrokerClient."""
        self._place.broker.submit(command, lambda answer: on_answer(_told(self.entity, answer)))


def _told(entity: str, answer: Answer) -> Answer:
    if isinstance(answer, Refusal) and answer.known and answer.condition in (STORE_OFFLINE, ENTITY_MOVED):
        return Refusal(
            SERVER_BUSY, f"A fragment of '{entity}' is away: {answer.text.rstrip('.')}. Wait, then send again."
        )
    return answer


def several_keys(entity: str) -> ServiceError:
    """Why a transaction does not take a message."""
    text = (
        f"'{entity}' is partitioned: all that one transaction sends to it has the same partition key or session id. "
        "Send what has another one in another transaction."
    )
    return ServiceError(NOT_ALLOWED, text)
