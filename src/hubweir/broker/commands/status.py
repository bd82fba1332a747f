"""How a broker is: the logs that it has open, and the alarms that stand in its process."""

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


@answer(76)
class StatusTold(Answer, frozen=True):
    """alarms: of the broker's whole process, which other brokers of it tell as well."""

    alarms: tuple[AlarmTold, ...]
    logs: tuple[LogTold, ...]


@command(220, StatusTold)
class AskStatus(Command, frozen=True):
    """How it is. Asked by people, now and then: it visits every log."""


def alarms_told(alarms: Alarms) -> tuple[AlarmTold, ...]:
    """Those that stand, the oldest first."""
    return tuple(AlarmTold(each.kind.name, each.about, each.text, each.since_ms) for each in alarms.current())
