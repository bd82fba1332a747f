"""The status of a broker: the logs that it has open, who reads them, and the alarms that stand in its process."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.alarms import Alarms
from hubweir.broker.commands.command import Answer, Command, answer, command


@dataclass(frozen=True, slots=True)
class AlarmTold:
    """An alarm that stands. kind: its name in alarms.KINDS. since_ms: when it began, on the wall clock."""

    kind: str
    about: str
    text: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class LogTold:
    """A log that is open. behind_events: what capture has not written yet; -1: it is not captured.

    capture_failure: why captured files cannot be written now; empty: they can.
    """

    log_id: str
    first_index: int
    next_index: int
    behind_events: int
    capture_failure: str


@dataclass(frozen=True, slots=True)
class ReaderTold:
    """A reader that is open on a partition. name: what it calls itself; owner_level -1: it has none.

    next_sequence_number: of the first event that it was not given yet; behind_events: how many there are from it on.
    process, peer, client: through which gateway process it came, from where, and the container id of its connection.
    """

    log_id: str
    consumer_group: str
    name: str
    owner_level: int
    next_sequence_number: int
    behind_events: int
    process: int
    peer: str
    client: str


@answer(76)
class StatusTold(Answer, frozen=True):
    """alarms: of the broker's whole process, which other brokers of it tell as well."""

    alarms: tuple[AlarmTold, ...]
    logs: tuple[LogTold, ...]


@command(220, StatusTold)
class AskStatus(Command, frozen=True):
    """How it is. Asked by people, now and then: it visits every log."""


@answer(77)
class ReadersTold(Answer, frozen=True):
    """consumer groups are in lower case."""

    readers: tuple[ReaderTold, ...]


@command(221, ReadersTold)
class AskReaders(Command, frozen=True):
    """Who reads its partitions. Asked by people, now and then: it visits every reader.

    log_ids: of the partitions that are meant; none: all of the broker.
    """

    log_ids: tuple[str, ...] = ()


def alarms_told(alarms: Alarms) -> tuple[AlarmTold, ...]:
    """Those that stand, the oldest first."""
    return tuple(AlarmTold(each.kind.name, each.about, each.text, each.since_ms) for each in alarms.current())
