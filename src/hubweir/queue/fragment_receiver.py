"""A receiver of a sub-queue of a fragment, in a session or without one."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from msgspec import Struct

from hubweir.errors import ServiceError
from hubweir.queue.message_session import MessageSession
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

NOTHING = array("q")  # `reading` of receivers for which no message is being read; never changed


class FragmentReceiver:
    """Who receives from a sub-queue; made by a fragment. Its owner keeps it until it closes.

    session_id, locked_until_ms (wall clock): of its session; None without one. is_open: it was not closed, nor lost.
    is_cancelled: its last receive was. reading: the counts of messages that are being read for it. on_given: see
    Fragment.accept_session. number: what its owner calls it.
    """

    __slots__ = (
        "is_cancelled", "is_open", "locked_until_ms", "mode", "number", "on_given", "on_lost", "reading", "session",
        "sub_queue",
    )  # fmt: skip

    def __init__(
        self,
        sub_queue: SubQueue,
        mode: ReceiveMode,
        session: MessageSession | None = None,
        on_lost: Callable[[FragmentReceiver, ServiceError], None] | None = None,
        on_given: OnGiven | None = None,
    ) -> None:
        self.sub_queue = sub_queue
        self.mode = mode
        self.session = session
        self.on_lost = on_lost
        self.on_given = on_given
        self.number = -1
        self.locked_until_ms: int | None = None
        self.is_open = True
        self.is_cancelled = False
        self.reading = NOTHING

    @property
    def is_reading(self) -> bool:
        return bool(self.reading)

    @property
    def session_id(self) -> str | None:
        return None if self.session is None else self.session.session_id.decode()


class GivenMessages(Struct, frozen=True):
    """Messages of several receivers: of receivers[i] the next counts[i] of rows. run, rows: as of ReceivedMessages."""

    run: bytes | memoryview
    rows: array[int]
    receivers: list[FragmentReceiver]
    counts: array[int]


# Told of messages of receivers that were opened with it.
OnGiven = Callable[[GivenMessages], None]
