"""One request and its answer, as values; and the reading of a body, which has a limit and a place in the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hubweir.errors import SERVER_BUSY, HubweirError, ServiceError
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.http.problem import HttpRefusal

T = TypeVar("T")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# How long a request waits for room before it is told that the service is busy.
ROOM_WAIT_S = 10.0
TOO_LARGE = 413


class ClientGone(HubweirError):
    """The peer went away in the middle of its request: there is nobody to answer."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. headers: besides content-type (None: there is none) and content-length.

    on_sent: called once, when the peer has taken it or is gone.
    """

    status: int
    body: bytes = b""
    content_type: str | None = "application/xml; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    on_sent: Callable[[], None] | None = field(default=None, repr=False)


@dataclass(slots=True)
class Request:
    """A request whose head was read. segments: of the path, decoded once, in the case they came.

    headers: by name in lower case; the last of several. fields: all of them as the peer spelt them, in order.
    is_management: its route is one of management, whose errors have a SubCode. peer: the address that it came from, ""
    where that is not known. entity: that its path names, "" for none; None: no route takes it, or nobody asked yet.
    """

    method: str
    segments: tuple[str, ...]
    query: str
    headers: Mapping[bytes, bytes]
    fields: Sequence[tuple[bytes, bytes]]
    base_uri: str
    receive: Receive = field(repr=False)
    body_was_asked_for: bool = False
    is_management: bool = False
    peer: str = ""
    entity: str | None = None

    def header(self, name: bytes) -> str | None:
        """A header's text, or None; bytes that are no UTF-8 are refused with 400."""
        value = self.headers.get(name)
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise HttpRefusal(400, f"The header {name.decode('latin-1')} is no UTF-8.") from None

    def body_size(self, limit: int, what: str, *, status: int = TOO_LARGE) -> int:
        """How many bytes the body may have: its length, or limit when it comes in chunks. status: when it is over."""
        length = self.headers.get(b"content-length")
        size = limit if length is None else int(length)
        if size > limit:
            raise too_large(what, limit, status=status)
        return size if length is not None or b"transfer-encoding" in self.headers else 0

    async def body(self, limit: int, what: str, *, status: int = TOO_LARGE) -> bytes:
        """The whole body; status when it is over limit. ClientGone when it ends in the middle."""
        self.body_was_asked_for = True
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                raise ClientGone("the peer went away before its request was complete")
            piece: bytes = message["body"]
            size += len(piece)
            if size > limit:
                raise too_large(what, limit, status=status)
            pieces.append(piece)
            if not message["more_body"]:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def gone(self) -> None:
        """Wait until the peer is gone, behind its whole body. For handlers that answer late; who waits cancels it."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


class Room:
    """A place in the process's byte budget for one request, taken before its body is read. (Rule R17)

    A body that is being read is never made to wait: two half-read ones could wait for each other.
    """

    def __init__(self, budget: ProcessBudget) -> None:
        self._budget = budget
        self._room = asyncio.Event()
        self._taken = 0

    async def take(self, size: int) -> None:
        """Wait until the process has room; ServiceError SERVER_BUSY when it has none in time."""
        try:
            async with asyncio.timeout(ROOM_WAIT_S):
                while self._budget.is_full:
                    self._room.clear()
                    self._budget.wait(self)
                    await self._room.wait()
        except TimeoutError:
            self._budget.forget(self)
            text = "The service holds as many bytes as it may that are not stored yet: send again in a moment."
            raise ServiceError(SERVER_BUSY, text) from None
        self._taken = size
        self._budget.take_bytes(size)

    def give_back(self) -> None:
        """The request is answered, or will never be. The second call does nothing."""
        taken, self._taken = self._taken, 0
        if taken:
            self._budget.give_back_bytes(taken)

    def process_has_room(self) -> None:
        self._room.set()


async def answer_of(start: Callable[[Callable[[T | ServiceError], None]], None]) -> T:
    """Wait for a completion: start(on_done) is called. Returns the value given to on_done; raises a ServiceError."""
    done: asyncio.Future[T | ServiceError] = asyncio.get_running_loop().create_future()
    start(lambda result: None if done.done() else done.set_result(result))
    result = await done
    if isinstance(result, ServiceError):
        raise result
    return result


def too_large(what: str, limit: int, *, status: int = TOO_LARGE) -> HttpRefusal:
    return HttpRefusal(status, f"{what} is larger than the limit of {limit} bytes. Send less at a time.")
