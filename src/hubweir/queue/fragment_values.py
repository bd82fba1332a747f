"""Values that go into a fragment and come out of it: times, answers, counts."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Refused

T = TypeVar("T")
# An answer: what was asked for; or why not, of the store (known: nothing was stored) or of the fragment's rules.
OnDone = Callable[[T | Refused | ServiceError], None]


class Times(Struct, frozen=True):
    """Now, on two clocks. stamp_ms: TrustedClock.stamp_ms, for enqueued times, time to live and schedules.

    monotonic_ms: Env.monotonic_ms, for the ends of locks and for waits.
    """

    stamp_ms: int
    monotonic_ms: int


class NumberRange(Struct, frozen=True):
    """Sequence numbers, end exclusive."""

    first_number: int
    next_number: int


class ReceivedMessages(Struct, frozen=True):
    """Records of messages, and a message row (kernels/contract.py, Q_…) for each, in the order of delivery.

    run: rows say where in it the records lie. rows: never changed any more.
    """

    run: bytes | memoryview
    rows: array[int]


class FragmentCounts(Struct, frozen=True):
    """How many messages of each kind there are; locked ones are active. size_bytes: of all their records."""

    active: int
    dead_lettered: int
    scheduled: int
    deferred: int
    transfer_dead_lettered: int
    size_bytes: int


class ListedSessions(Struct, frozen=True):
    """A page of session ids. passed: how many were passed over in front of it."""

    session_ids: tuple[str, ...]
    passed: int
