"""Forwarding: transfers of messages from one fragment to another, as the forwarder between them asks for them.

The forwarder (gateway/forwarder.py) takes a transfer at its source, has it stored at its destination, and ends it at
its source; source and destination may be at different brokers. What a transfer is says queue/transfers.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.broker.commands.command import (
    Answer,
    Command,
    Cost,
    LogCommand,
    OwnedCommand,
    Push,
    answer,
    command,
    push,
)
from hubweir.broker.commands.process import Done
from hubweir.queue.forwarding import TransferEnd
from hubweir.queue.sub_queue import SubQueue


@answer(110)
class TransferTaken(Answer, frozen=True):
    """An open transfer (queue/forwarding.py OpenTransfer); transfer: its number, 0: there is none.

    messages: how many are in run; 0 of one that is there: they cannot be read. origins: what they were first, then when
    they expire, in bytes of array('q').
    """

    transfer: int
    attempt: int
    destination: bytes
    messages: int
    origins: bytes
    run: bytes | memoryview


@command(60, TransferTaken, cost=Cost.WAIT)
class TakeTransfer(OwnedCommand, frozen=True):
    """The open transfer of a sub-queue, or a new one to this destination once there is a message; see Fragment.

    Answered with none when somebody else asks, or its owner ends. destination b"": only an open one, at once.
    """

    sub_queue: SubQueue
    destination: bytes


@answer(111)
class TransferStored(Answer, frozen=True):
    """is_stored: the destination has it, durable; False: it was asked, has it not, and takes no earlier attempt."""

    is_stored: bool


@command(61, TransferStored)
class StoreTransfer(LogCommand, frozen=True):
    """Store the messages of a transfer unless they were stored; without messages it asks. See Fragment.

    transfer: its number. source: names the sub-queue that they come from. origins: as of TransferTaken. The broker owns
    run from now on.
    """

    source: bytes
    attempt: int
    transfer: int
    messages: int
    origins: bytes
    run: bytearray


@command(62, Done)
class EndTransfer(LogCommand, frozen=True):
    """A transfer is over, as `how` says. Answered when that is durable. reason, description: of REFUSED."""

    sub_queue: SubQueue
    transfer: int
    attempt: int
    how: TransferEnd
    reason: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class TransferPlace:
    """A sub-queue of which a transfer is open. log_id: by which commands name its fragment."""

    log_id: str
    sub_queue: SubQueue


@answer(112)
class OpenTransfersListed(Answer, frozen=True):
    """places: of the fragments that are open at this broker."""

    places: tuple[TransferPlace, ...]


@command(59, OpenTransfersListed)
class ListOpenTransfers(Command, frozen=True):
    """Where a transfer is open: what was on its way when a forwarder ended goes on, whatever forwards now."""


@push(141)
class TransferOpen(Push, frozen=True):
    """A log was opened, maybe late, and a transfer is open in it: whoever forwards goes on with it. owner: ANYBODY."""

    log_id: str
    sub_queue: SubQueue
