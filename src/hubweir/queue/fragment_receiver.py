"""A receiver of a sub-queue of a fragment, in a session or without one."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from hubweir.errors import ServiceError
from hubweir.queue.message_session import MessageSession
from hubweir.queue.sub_queue import ReceiveMode, SubQueue


class FragmentReceiver:
    """Who receives from a sub-queue; made by a fragment. Its owner keeps it until it closes.

    session_id, locked_until_ms (wall clock): of its session; None without one. is_open: it was not closed, nor lost.
    reading: the counts of messages that are being read for it.
    """

    __slots__ = ("is_open", "locked_until_ms", "mode", "on_lost", "reading", "session", "sub_queue")

    def __init__(
        self,
        sub_queue: SubQueue,
        mode: ReceiveMode,
        session: MessageSession | None = None,
        on_lost: Callable[[FragmentReceiver, ServiceError], None] | None = None,
    ) -> None:
        self.sub_queue = sub_queue
        self.mode = mode
        self.session = session
        self.on_lost = on_lost
        self.locked_until_ms: int | None = None
        self.is_open = True
        self.reading = array("q")

    @property
    def is_reading(self) -> bool:
        return bool(self.reading)

    @property
    def session_id(self) -> str | None:
        return None if self.session is None else self.session.session_id.decode()
