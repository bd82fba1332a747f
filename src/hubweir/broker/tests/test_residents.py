"""What a broker asks of whatever lives on a log, tried with a resident of another kind than a partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from hubweir.broker.commands.capture import AskCaptureState
from hubweir.broker.commands.command import Answer, LogCommand, Owner
from hubweir.broker.commands.partition import AppendEvents, AskPartitionInfo, EventsAppended
from hubweir.broker.commands.process import CloseOwner, Done, Refusal
from hubweir.broker.commands.producer import CloseProducer, OpenProducer
from hubweir.broker.commands.reader import CancelRead, CloseReader, ConfirmReaderClosed, OpenReader, ReadEvents
from hubweir.broker.residents import Handler, Residents
from hubweir.broker.tests.conftest import HandLog
from hubweir.counters import Counters
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.event_hub.event_position import EARLIEST
from hubweir.messaging_store.log import Durability, Refused

ME, OTHER = Owner(1, 7), Owner(1, 8)


class Parrot:
    """A resident that remembers what it is told."""

    def __init__(self, log_id: str) -> None:
        self.log: Any = HandLog(log_id, Durability.DURABLE)
        self.resident_id = log_id
        self.told: list[Any] = []
        self.on_idle: list[Callable[[], None]] = []

    def settle(self, on_done: Callable[[Refused | None], None]) -> None:
        on_done(None)

    def begin(self) -> None:
        self.told.append("begin")

    def owner_gone(self, owner: Owner) -> None:
        self.told.append(owner)

    def sweep(self, now_ms: int) -> None:
        self.told.append(now_ms)

    def end(self, on_idle: Callable[[], None]) -> None:
        self.on_idle.append(on_idle)

    stop = end

    def _append(self, command: AppendEvents, on_answer: Callable[[Answer], None]) -> None:
        if not command.run:
            raise ServiceError(ARGUMENT_ERROR, "nothing to repeat")
        self.told.append(bytes(command.run))
        on_answer(EventsAppended(0, 1))

    def _open(self, command: OpenReader, on_answer: Callable[[Answer], None]) -> None:
        on_answer(Done())

    handlers: ClassVar[Mapping[type[LogCommand], Handler]] = {AppendEvents: _append, OpenReader: _open}


def hosted(bench: Any, log_id: str) -> Parrot:
    parrot = Parrot(log_id)
    bench.broker._residents.add(parrot)
    return parrot


def reader(log_id: str, owner: Owner = ME) -> OpenReader:
    return OpenReader(log_id, owner, "g", EARLIEST, None, None)


def test_a_command_goes_to_the_resident_of_its_log_and_a_refusal_that_it_raises_is_the_answer(bench: Any) -> None:
    parrots = [hosted(bench, name) for name in "xy"]
    assert bench.ask(AppendEvents("y", bytearray(b"hello"))) == [EventsAppended(0, 1)]
    assert [parrot.told for parrot in parrots] == [["begin"], ["begin", b"hello"]]
    (refused,) = bench.ask(AppendEvents("x", bytearray()))
    assert isinstance(refused, Refusal) and refused.text == "nothing to repeat"


def test_a_command_of_another_kind_of_resident_is_refused(bench: Any) -> None:
    hosted(bench, "x")
    (refused,) = bench.ask(AskPartitionInfo("x"))
    assert isinstance(refused, Refusal) and refused.condition.symbol == "amqp:not-allowed"
    assert refused.text == "log x takes no AskPartitionInfo"


def test_the_end_of_an_owner_is_told_to_those_that_it_came_to_and_to_nobody_else_and_once(bench: Any) -> None:
    x, y, z = (hosted(bench, name) for name in "xyz")
    for command in (reader("x"), reader("x"), reader("y", OTHER), AppendEvents("z", bytearray(b"no owner"))):
        bench.ask(command)
    for _ in range(2):
        assert bench.ask(CloseOwner(ME)) == [Done()]
    assert [parrot.told[-1] for parrot in (x, y, z)] == [ME, "begin", b"no owner"] and len(x.told) == 2
    bench.ask(reader("x"))
    bench.ask(CloseOwner(ME))
    assert x.told == ["begin", ME, ME], "it came again"


def test_the_end_of_a_process_is_told_for_all_of_its_connections_and_once_to_each_log(bench: Any) -> None:
    x, y, z = (hosted(bench, name) for name in "xyz")
    process = Owner(1, -1)
    for command in (reader("x"), reader("x", OTHER), reader("y", OTHER), reader("z", Owner(2, 7))):
        bench.ask(command)
    bench.ask(CloseOwner(process))
    assert [parrot.told[1:] for parrot in (x, y, z)] == [[process], [process], []]
    bench.ask(CloseOwner(OTHER))
    assert y.told[1:] == [process]


def test_an_owner_whose_opening_is_refused_is_told_to_its_log_all_the_same(bench: Any) -> None:
    """Refused now does not mean that nothing is left: what waits is not answered yet either."""
    x = hosted(bench, "x")
    bench.ask(OpenProducer("x", ME, None, None, None))  # which it does not take
    bench.ask(CloseOwner(ME))
    assert x.told == ["begin", ME]


def test_a_log_that_is_gone_is_not_told_and_leaves_nothing_behind() -> None:
    residents = Residents(Counters())
    x, y = Parrot("x"), Parrot("y")
    for parrot in (x, y):
        residents.add(parrot)
        residents.opens(reader(parrot.log.log_id))
    assert residents.drop("x") is x and residents.drop("x") is None
    assert residents._logs_of == {ME: {"y": None}}
    residents.owner_gone(ME)
    assert (x.told, y.told) == (["begin"], ["begin", ME]) and residents._logs_of == {}


def test_a_sweep_visits_each_once_and_passes_over_those_that_went_meanwhile() -> None:
    residents, parrots = Residents(Counters()), [Parrot(name) for name in "xyz"]
    for parrot in parrots:
        residents.add(parrot)
    assert residents.sweep_next(5)
    gone = next(parrot for parrot in parrots if parrot.told == ["begin"])
    residents.drop(gone.log.log_id)
    while residents.sweep_next(5):
        pass
    assert gone.told == ["begin"]
    assert [parrot.told for parrot in parrots if parrot is not gone] == [["begin", 5]] * 2
    for _ in range(2):
        residents.sweep_next(6)
    assert [parrot.told[-1] for parrot in parrots if parrot is not gone] == [6, 6], "the next sweep begins anew"


def test_a_stop_is_over_when_all_residents_are_idle() -> None:
    residents, ended = Residents(Counters()), list[int]()
    residents.stop(lambda: ended.append(0))
    assert ended == [0], "there is nobody"
    parrots = [Parrot(name) for name in "xyz"]
    for parrot in parrots:
        residents.add(parrot)
    residents.stop(lambda: ended.append(1))
    for parrot in parrots:
        assert ended == [0]
        (idle,) = parrot.on_idle
        idle()
    assert ended == [0, 1]


@pytest.mark.parametrize("made", [CancelRead, CloseReader, ConfirmReaderClosed, CloseProducer])
def test_what_ends_something_of_a_log_that_is_not_here_is_done(bench: Any, made: Any) -> None:
    """It ended with its log. Refused, it would look as if something were left open."""
    assert bench.ask(made("gone", 1)) == [Done()]


@pytest.mark.parametrize("command", [ReadEvents("gone", 1, 10, 0), AskCaptureState("gone"), reader("gone")])
def test_anything_else_about_a_log_that_is_not_here_is_refused_and_its_owner_not_remembered(
    bench: Any, command: Any
) -> None:
    (refused,) = bench.ask(command)
    assert isinstance(refused, Refusal) and refused.condition.symbol == "com.microsoft:entity-moved"
    assert bench.broker._residents._logs_of == {}
