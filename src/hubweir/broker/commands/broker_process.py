"""Commands about whole broker processes, and not about one of their brokers.

A supervisor asks a process whether it lives, to take clients in, to let them go, and to go by other settings. A process
asks the supervisor which processes there are, and hands it the faults that a user orders for a test. It asks another
process who is connected there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hubweir.broker.commands.command import Answer, Command, answer, command
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.status import AlarmTold


class ProcessCommand(Command, frozen=True):
    """A command that no broker takes."""


@dataclass(frozen=True, slots=True)
class StandingAlarm:
    """One alarm of a process (alarms.py): the name of its kind, and what it is about."""

    kind: str
    about: str


@answer(73)
class ProcessState(Answer, frozen=True):
    """process_id: of this life of the process, as owners name it. index: 0 … number of processes - 1.

    start: the digest of what it was started with; another start of the same service with other settings has another.
    addresses: host:port of each that it was told to listen on. connections: how many AMQP connections it has.
    is_serving: clients may come. follows: it has the newest catalog of every namespace. away: the messaging stores of
    it that are not served. alarms: that stand there, but for those that it heard of. of_namespaces: how many of the
    connections are each namespace's, by its name. has_portal: it has loaded the portal, or is loading it.
    """

    process_id: int
    index: int
    start: str
    addresses: tuple[str, ...]
    connections: int
    is_serving: bool
    follows: bool
    away: tuple[int, ...]
    alarms: tuple[StandingAlarm, ...] = ()
    of_namespaces: dict[str, int] = {}
    has_portal: bool = False


@command(17, ProcessState)
class AskProcess(ProcessCommand, frozen=True):
    """How it is. Whoever does not answer for long is stalled.

    elsewhere: the alarms of all other processes. opened: the messaging stores, of any process, whose logs are open, or
    have an alarm each that says why not. wants_portal: somebody looks at the portal of another process.
    """

    elsewhere: tuple[StandingAlarm, ...] = ()
    opened: tuple[int, ...] = ()
    wants_portal: bool = False


@command(18, Done)
class TakeClients(ProcessCommand, frozen=True):
    """Listen for clients, as soon as the catalog is followed; does nothing when it did before. Answered when it takes
    clients and has the newest catalog of every namespace.

    Whoever asks has had the logs of its stores opened.
    """


@command(19, Done)
class LetClientsGo(ProcessCommand, frozen=True):
    """Take no more clients, settle what was received, and close connections with amqp:connection:forced.

    Answered when the last one is closed.
    """


@command(219, Done)
class ChangeSettings(ProcessCommand, frozen=True):
    """Go by other settings from now on, and read the certificate again. Answered at once.

    log_level, tls_cert, tls_key, tls_client_ca: see config/settings.py.
    """

    log_level: str
    tls_cert: str
    tls_key: str
    tls_client_ca: str


@answer(75)
class MeasuresTaken(Answer, frozen=True):
    """Everything that a process measures, for a scrape. document: as service/scrape.py writes it."""

    document: bytes | memoryview


@command(58, MeasuresTaken)
class AskMeasures(ProcessCommand, frozen=True):
    """Answered MeasuresTaken, by broker processes and by their supervisor."""


@dataclass(frozen=True, slots=True)
class ProcessTold:
    """One broker process, as its supervisor knows it. pid: 0 while there is none. starts: how often it was started.

    state: starts, serves, silent, stops or stopped (docs/brokers.md). away: those of its stores that are not served.
    of_namespaces: see ProcessState.
    """

    index: int
    pid: int
    stores: tuple[int, ...]
    state: str
    connections: int
    starts: int
    away: tuple[int, ...]
    of_namespaces: dict[str, int] = field(default_factory=dict)


@answer(74)
class ProcessesTold(Answer, frozen=True):
    """All broker processes, by index. alarms: those that stand in the process that answers."""

    processes: tuple[ProcessTold, ...]
    alarms: tuple[AlarmTold, ...] = ()


@command(28, ProcessesTold)
class AskProcesses(ProcessCommand, frozen=True):
    """Which broker processes there are, and how they are."""


class BrokerFault(Enum):
    """What a broker process may be ordered. STOP: it ends in order and stays away, until START. KILL: it ends at once,
    and is started again. STALL: it does nothing more until it is killed for it, and started again.
    """

    START = "start"
    STOP = "stop"
    KILL = "kill"
    STALL = "stall"


@command(29, Done)
class OrderFault(ProcessCommand, frozen=True):
    """Have a broker process end, stall or begin, for a test. Answered when it is on its way."""

    index: int
    fault: BrokerFault


@command(57, Done)
class MarkStore(ProcessCommand, frozen=True):
    """Take a messaging store away, for a test, or bring it back. Answered when its folder is free, or is looked for.

    It stays away until it is brought back, or its process ends.
    """

    store: int
    is_away: bool


@dataclass(frozen=True, slots=True)
class ConnectionTold:
    """One AMQP connection. number: in its process. since_ms: on the wall clock. entities: that its links are for, each
    once; of many the first, and "…". links: all that stand. rules: whose keys, tokens or certificates proved what
    it may do. client: the library that the peer says it is; container: the id that it gave itself.
    """

    number: int
    peer: str
    is_tls: bool
    since_ms: int
    client: str
    container: str
    rules: tuple[str, ...]
    entities: tuple[str, ...]
    links: int


@answer(78)
class ConnectionsTold(Answer, frozen=True):
    """connections: those that were asked for. total: how many there are."""

    connections: tuple[ConnectionTold, ...]
    total: int


@command(222, ConnectionsTold)
class AskConnections(ProcessCommand, frozen=True):
    """Who is connected to a namespace in this process: `count` of them behind the first `skipped`, the oldest first."""

    namespace: str
    skipped: int
    count: int
