"""A receive on its way: what it asked for, and the messages that are being read for it."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from msgspec import Struct

from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_receiver import FragmentReceiver
from hubweir.queue.fragment_values import OnDone, ReceivedMessages
from hubweir.queue.sub_queue import ReceiveMode

# Of one answer; what a receiver wants beyond it comes with its next receive.
RECEIVE_LIMIT = 5_000


class Wanted(Struct):
    """What a receive asked for and has not got yet; see Fragment.receive."""

    max_count: int
    max_bytes: int
    waits: bool
    on_done: OnDone[ReceivedMessages]


class Given(Struct, frozen=True):
    """Messages that are being read. counts: theirs; is_counted: a delivery of each was.

    again: has their receive wait on, where a message of them is lost.
    """

    counts: array[int]
    rows: array[int]
    mode: ReceiveMode
    is_counted: bool
    on_done: OnDone[ReceivedMessages]
    receiver: FragmentReceiver | None = None
    again: Callable[[], None] | None = None


def nothing_received() -> ReceivedMessages:
    """The answer of a receive without messages."""
    return ReceivedMessages(b"", array("q"))


def changes_of(core: FragmentCore, counts: array[int]) -> dict[int, bytes]:
    """Changed properties by place."""
    changed = core.state.changed
    if not changed:
        return {}
    return {place: changed[count] for place, count in enumerate(counts) if count in changed}
