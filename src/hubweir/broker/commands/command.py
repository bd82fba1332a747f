"""Declares commands, answers and pushes: frozen values with a number each, and what is known of a command beforehand.

A class is written once, as `@command(NUMBER, ANSWER, cost=…) class Name(Command, frozen=True)`, and its fields say how
it travels (wire.py). A number is never used again for another class.

| numbers   | kind |
|----------:|------|
|    1 – 63 | commands to a broker, its logs or its process; all are given |
|  64 – 127 | answers |
| 128 – 159 | pushes: what a broker says unasked |
| 160 – 189 | further commands to a broker, its logs or its process: a new one takes the next of these |
| 190 – 191 | further pushes |
| 192 – 223 | commands to the keeper of the catalogs, of a supervisor to its processes, and a few of the first kind |
| 224 – 255 | further answers |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeVar

from msgspec import Struct

from hubweir.messaging_store.log import Durability


class Cost(Enum):
    """Which limits a command falls under while it is not answered."""

    PLACE = "a place among the commands that may be under way, on both sides; its bytes, too"
    WAIT = "no place: a reader has one at a time and waits long, and a place each would keep all other commands out"
    END = "a place at the broker, none where it is asked: refused, it would leave something open for ever"


class Answer(Struct, frozen=True):
    """What a command is answered with. A frozen value."""

    number: ClassVar[int]


class Command(Struct, frozen=True):
    """What a broker may be asked. A frozen value. answers: the classes of its answer, other than a refusal."""

    number: ClassVar[int]
    answers: ClassVar[tuple[type[Answer], ...]]
    cost: ClassVar[Cost]


class LogCommand(Command, frozen=True):
    """A command about one log, which is its first field. The log's resident handles it (broker/residents.py)."""

    log_id: str


class CreateLog(LogCommand, frozen=True):
    """A command that has its broker make a log, or open one that was made before (`makes` is False then).

    name: what people call what lives on it. durability: the log's mode. inside: the ids of what else is named by an id
    of its own and lives on this log.
    """

    makes: ClassVar[bool] = True

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def log_durability(self) -> Durability:
        raise NotImplementedError

    @property
    def inside(self) -> Sequence[str]:
        return ()


def in_namespace(what: str, namespace: str) -> str:
    """What people call what lives on a log; its namespace too, where it is known."""
    return f"{what} in namespace {namespace}" if namespace else what


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a reader or a producer is: a gateway process and one of its connections; -1: all of its connections.

    The end of either closes what they had open.
    """

    process: int
    connection: int

    def covers(self, other: Owner) -> bool:
        """Whether the end of this owner is the end of the other one, too."""
        return other == self or (self.connection == -1 and other.process == self.process)


class OwnedCommand(LogCommand, frozen=True):
    """A command that opens something of a log for an owner; the end of the owner closes it, answered or not."""

    owner: Owner


class KeeperCommand(Command, frozen=True):
    """What a process may ask of the keeper of the catalogs (keeper.py), which no broker answers. A frozen value.

    owner: the process, with all of its connections. namespace: which one it is about.
    """

    owner: Owner
    namespace: str


class Push(Struct, frozen=True):
    """What a broker says unasked. A frozen value. owner: whom it concerns."""

    number: ClassVar[int]
    owner: Owner


Message = Command | Answer | Push
OnAnswer = Callable[[Answer], None]
Made = TypeVar("Made", bound=Message)
MadeCommand = TypeVar("MadeCommand", bound=Command)

# All that travels, by number. Complete when every page of this folder is imported.
DECLARED: dict[int, type[Message]] = {}
_NUMBERS: dict[type, tuple[range, ...]] = {
    Command: (range(1, 64), range(160, 190), range(192, 224)),
    Answer: (range(64, 128), range(224, 256)),
    Push: (range(128, 160), range(190, 192)),
}


def nobody_waits(answer: Answer) -> None:
    """Takes the answer of a command that nobody waits for."""


def command(
    number: int, *answers: type[Answer], cost: Cost = Cost.PLACE
) -> Callable[[type[MadeCommand]], type[MadeCommand]]:
    """Declare a command: a frozen value that is answered once, with one of these classes or with a Refusal."""

    def declare(made: type[MadeCommand]) -> type[MadeCommand]:
        made = _declared(made, number)
        made.answers, made.cost = answers, cost
        return made

    return declare


def answer(number: int) -> Callable[[type[Made]], type[Made]]:
    """Declare an answer."""
    return lambda made: _declared(made, number)


def push(number: int) -> Callable[[type[Made]], type[Made]]:
    """Declare a push."""
    return lambda made: _declared(made, number)


def _declared(made: type[Made], number: int) -> type[Made]:
    [ranges] = [ranges for kind, ranges in _NUMBERS.items() if issubclass(made, kind)]
    is_free = number not in DECLARED and any(number in numbers for numbers in ranges)
    assert is_free, f"{made.__name__} cannot have the number {number}"
    made.number = number
    DECLARED[number] = made  # type: ignore[assignment]  # Made is a subclass of one of the three
    return made
