"""What a supervisor asks a broker process, not one of its brokers: whether it lives, to take clients in, to let go."""

from __future__ import annotations

from hubweir.broker.commands.command import Answer, Command, answer, command
from hubweir.broker.commands.process import Done


class ProcessCommand(Command, frozen=True):
    """A command that no broker takes."""


@answer(73)
class ProcessState(Answer, frozen=True):
    """process_id: of this life of the process, as owners name it. index: 0 … number of processes - 1.

    start: the digest of what it was started with; another start of the same service with other settings has another.
    addresses: host:port of each that it was told to listen on. connections: how many AMQP connections it has.
    is_serving: clients may come.
    """

    process_id: int
    index: int
    start: str
    addresses: tuple[str, ...]
    connections: int
    is_serving: bool


@command(17, ProcessState)
class AskProcess(ProcessCommand, frozen=True):
    """How it is. Whoever does not answer for long is stalled."""


@command(18, Done)
class TakeClients(ProcessCommand, frozen=True):
    """Listen for clients, as soon as the catalog is followed. Answered when it does; does nothing when it did before.

    Whoever asks has had the logs of its stores opened.
    """


@command(19, Done)
class LetClientsGo(ProcessCommand, frozen=True):
    """Take no more clients, settle what was received, and close connections with amqp:connection:forced.

    Answered when the last one is closed.
    """
