"""The asking end of a broker's stream: submit like a call, answered by a frame.

When the stream ends, whatever was not answered is refused as not known: the broker may have stored it or not, and
nothing is ever sent a second time. Commands after the end are refused as known: they were not sent.

How many may wait is bounded, but for what costs no place here (commands/command.py); one more is refused as known, with
SERVER_BUSY: nobody has to take that for a broker's word that something is full. An answer of a class that its command
does not name is a DecodeError, and ends the stream.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.commands.command import Answer, Command, Cost, Push
from hubweir.broker.commands.process import Refusal
from hubweir.broker.refusals import refusal_of
from hubweir.broker.wire import FRAME_LIMIT_BYTES, decode_answer, encode_frame
from hubweir.drivers.broker_driver import BrokerDriver
from hubweir.errors import RESOURCE_LIMIT, SERVER_BUSY, STORE_OFFLINE, TIMED_OUT, DecodeError, EncodeError, ServiceError

# More than a broker takes from one peer before it stops reading; beyond that commands are refused, not kept.
OUTSTANDING_LIMIT = 16_384
_NOT_COUNTED = (Cost.WAIT, Cost.END)


class SocketBroker:
    """A broker of another process. Make it, then put a BrokerDriver around it with `driver`."""

    def __init__(
        self, *, outstanding_limit: int = OUTSTANDING_LIMIT, on_gone: Callable[[], None] | None = None
    ) -> None:
        """on_gone: called once, when the stream has ended and everything that waited was refused."""
        self._on_gone = on_gone
        self._limit = outstanding_limit
        self._driver: BrokerDriver | None = None
        self._waiting: dict[int, tuple[type[Command], Callable[[Answer], None]]] = {}
        self._counted: dict[int, None] = {}  # of these, the requests that the limit is for
        self._last_request = 0
        self._on_push: Callable[[Push], None] | None = None

    def driver(self) -> BrokerDriver:
        """The protocol of the broker's stream."""
        self._driver = BrokerDriver(self, frame_limit_bytes=FRAME_LIMIT_BYTES)
        return self._driver

    @property
    def is_up(self) -> bool:
        """Whether there is a stream."""
        return self._driver is not None

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Send a command; on_answer is called once, maybe before this returns when it cannot be sent."""
        if self._driver is None:
            text = "the broker that stores this is away; try again"
            on_answer(refusal_of(ServiceError(STORE_OFFLINE, text)))
            return
        is_counted = command.cost not in _NOT_COUNTED
        if is_counted and len(self._counted) >= self._limit:
            text = f"{self._limit} commands wait for this broker; try again later"
            on_answer(refusal_of(ServiceError(SERVER_BUSY, text)))
            return
        try:
            frame = encode_frame(self._last_request + 1, command)
        except EncodeError as error:
            on_answer(refusal_of(ServiceError(RESOURCE_LIMIT, str(error))))
            return
        self._last_request += 1
        self._waiting[self._last_request] = type(command), on_answer
        if is_counted:
            self._counted[self._last_request] = None
        self._driver.send(frame)

    def listen(self, on_push: Callable[[Push], None]) -> None:
        """Give what the broker pushes to on_push from now on."""
        self._on_push = on_push

    def close(self) -> None:
        """End the stream after what waits to be sent."""
        if self._driver is not None:
            self._driver.close()

    def abort(self) -> None:
        """End the stream now."""
        if self._driver is not None:
            self._driver.abort()

    # What the driver calls

    def on_frame(self, head: memoryview, body: bytearray) -> None:
        request_id, message = decode_answer(head, body)
        if isinstance(message, Push):
            if self._on_push is not None:
                self._on_push(message)
            return
        if request_id not in self._waiting:
            raise DecodeError(f"the broker answered request {request_id}, which nobody made")
        asked, on_answer = self._waiting[request_id]
        if not isinstance(message, (*asked.answers, Refusal)):
            raise DecodeError(f"{asked.__name__} was answered with a {type(message).__name__}, which is not its answer")
        del self._waiting[request_id]
        self._counted.pop(request_id, None)
        on_answer(message)

    def on_writing_paused(self) -> None:
        """Commands go on into the buffer: their number is bounded, and their bytes by whoever took them in."""

    def on_writable(self) -> None:
        """Nothing was held back."""

    def on_closed(self) -> None:
        self._driver = None
        waiting, self._waiting, self._counted = self._waiting, {}, {}
        for _, on_answer in waiting.values():
            text = "the broker went away before it answered; whether the command took effect is unknown"
            on_answer(refusal_of(ServiceError(TIMED_OUT, text), known=False))
        if self._on_gone is not None:
            self._on_gone()
