"""A broker behind a byte stream: frames in, commands run, answers and pushes out as frames.

One peer is one gateway process. Bounds: at most INBOX_COMMANDS commands and INBOX_BYTES bytes of their frames are under
way for a peer; above that, or while the peer does not take its answers, its stream is not read. Reads are not counted:
there is one a reader, they wait long, and counting them could keep out the very commands that would end them.
What a peer sends in a run is checked against the run's own checksums before the broker sees it. The end of the
stream, from either side, closes the readers and producers of every process that spoke over it.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable
from typing import Protocol

from hubweir.broker.commands.command import Answer, Command, Cost, Owner, Push, nobody_waits
from hubweir.broker.commands.forwarding import StoreTransfer
from hubweir.broker.commands.process import CloseOwner
from hubweir.broker.commands.transaction import ANYBODY, TransactionEffects
from hubweir.broker.refusals import refusal_of
from hubweir.broker.wire import FRAME_LIMIT_BYTES, decode_command, encode_frame
from hubweir.drivers.broker_driver import BrokerDriver
from hubweir.errors import DECODE_ERROR, INTERNAL_ERROR, EncodeError, ServiceError
from hubweir.kernels import scan_batches
from hubweir.kernels.contract import B_KIND, BATCH_WIDTH, BATCHES_OK
from hubweir.kernels.stored_batch import KIND_EVENTS

logger = logging.getLogger(__name__)

# A thousand partitions with a run under way each, and room for as many requests again.
INBOX_COMMANDS = 2_048
INBOX_BYTES = 64 * 1024 * 1024
NEW_RUN_NONCE = 0
ROWS_A_SCAN = 32  # a run of one turn has a few batches of 64 KiB


def run_is_sound(run: bytearray) -> bool:
    """Whether a run that was not completed yet is whole batches of events whose payload checksums hold (rule R18)."""
    table = array("q", bytes(8 * BATCH_WIDTH * ROWS_A_SCAN))
    position = 0
    while position < len(run):
        rows, after, status = scan_batches(run, position, len(run), NEW_RUN_NONCE, table)
        kinds = table[B_KIND : rows * BATCH_WIDTH : BATCH_WIDTH]
        if status != BATCHES_OK or after == position or any(kind != KIND_EVENTS for kind in kinds):
            return False
        position = after
    return len(run) > 0


def _may_be_empty(command: Command) -> bool:
    """A transaction may send nothing, and whoever forwards may ask whether a transfer was stored."""
    return isinstance(command, TransactionEffects) or (isinstance(command, StoreTransfer) and not command.messages)


class CommandTarget(Protocol):
    """What takes commands: a broker, or the keeper of the catalog. `on_push` gets what it says unasked."""

    on_push: Callable[[Push], None] | None

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Run a command; on_answer is called exactly once."""


class BrokerServer:
    """Serves one peer. Make it, then put a BrokerDriver around it with `driver`."""

    def __init__(
        self,
        broker: CommandTarget,
        *,
        inbox_commands: int = INBOX_COMMANDS,
        inbox_bytes: int = INBOX_BYTES,
        on_gone: Callable[[], object] | None = None,
    ) -> None:
        """on_gone: called once, when the stream has ended and all that came over it is closed."""
        self._on_gone = on_gone
        self._broker = broker
        self._inbox_commands = inbox_commands
        self._inbox_bytes = inbox_bytes
        self._driver: BrokerDriver | None = None
        self._commands = 0
        self._bytes = 0
        self._peer_is_slow = False
        self._reading_paused = False
        self._processes: dict[int, None] = {}

    def driver(self) -> BrokerDriver:
        """The protocol of the peer's stream."""
        self._driver = BrokerDriver(self, frame_limit_bytes=FRAME_LIMIT_BYTES)
        return self._driver

    @property
    def commands_under_way(self) -> int:
        """Commands of this peer that were not answered yet, reads left out."""
        return self._commands

    def speaks_for(self, process_id: int) -> bool:
        """Whether something was asked over this stream in the name of a process."""
        return process_id in self._processes

    def push(self, push: Push) -> None:
        """Send a push when it concerns a process that speaks over this stream."""
        concerns = push.owner.process in self._processes or push.owner == ANYBODY
        if concerns and self._driver is not None:
            self._driver.send(encode_frame(0, push))

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
        request_id, command = decode_command(head, body)
        owner: Owner | None = getattr(command, "owner", None)
        if owner is not None:
            self._processes[owner.process] = None
        if command.cost is Cost.WAIT:
            self._broker.submit(command, lambda answer: self._send(request_id, answer))
            return
        run: bytearray | None = getattr(command, "run", None)
        size = len(head) + len(body)
        self._commands += 1
        self._bytes += size
        self._balance()
        if run is not None and not (_may_be_empty(command) and not run) and not run_is_sound(run):
            text = "the run was damaged on its way to the broker; nothing was stored"
            self._answer(request_id, size, refusal_of(ServiceError(DECODE_ERROR, text)))
            return
        self._broker.submit(command, lambda answer: self._answer(request_id, size, answer))

    def on_writing_paused(self) -> None:
        self._peer_is_slow = True
        self._balance()

    def on_writable(self) -> None:
        self._peer_is_slow = False
        self._balance()

    def on_closed(self) -> None:
        self._driver = None
        for process in self._processes:
            self._broker.submit(CloseOwner(Owner(process, -1)), nobody_waits)
        if self._on_gone is not None:
            self._on_gone()

    # Inside

    def _answer(self, request_id: int, size: int, answer: Answer) -> None:
        self._commands -= 1
        self._bytes -= size
        self._send(request_id, answer)
        self._balance()

    def _send(self, request_id: int, answer: Answer) -> None:
        if self._driver is None:
            return
        try:
            frame = encode_frame(request_id, answer)
        except EncodeError as error:
            frame = encode_frame(request_id, refusal_of(ServiceError(INTERNAL_ERROR, str(error)), known=False))
        self._driver.send(frame)

    def _balance(self) -> None:
        """Read the peer while there is room, with a gap between stopping and going on."""
        if self._driver is None:
            return
        full = self._commands >= self._inbox_commands or self._bytes >= self._inbox_bytes
        roomy = self._commands <= self._inbox_commands // 2 and self._bytes <= self._inbox_bytes // 2
        if not self._reading_paused and (full or self._peer_is_slow):
            self._reading_paused = True
            self._driver.pause_reading()
        elif self._reading_paused and roomy and not self._peer_is_slow:
            self._reading_paused = False
            self._driver.resume_reading()
