"""What tests of readers do with the bench of conftest.py: open one, append for it, answer it with a fault."""

from typing import Any

from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.reader import OpenReader, ReaderOpened
from hubweir.event_hub.event_position import EARLIEST, EventPosition

ME = Owner(1, 7)


def open_reader(bench: Any, position: EventPosition = EARLIEST) -> int:
    (answer,) = bench.ask(OpenReader("a", ME, "$Default", position, None, None))
    assert isinstance(answer, ReaderOpened)
    return answer.reader_id


def append(bench: Any, run: bytes) -> None:
    bench.ask(AppendEvents("a", bytearray(run)))


def planted(answer: Answer) -> None:
    raise RuntimeError("planted")
