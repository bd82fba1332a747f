"""A gateway that cannot be told how something ended: a fault of ours, for which nobody else waits."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.broker.commands.partition import DeletePartition
from hubweir.broker.commands.process import AskCounters, CloseOwner, Done
from hubweir.broker.commands.producer import OpenProducer
from hubweir.broker.commands.reader import OpenReader, ReaderClosed, ReaderOpened, ReadEvents
from hubweir.broker.tests.reader_steps import ME, open_reader, planted
from hubweir.event_hub.event_position import EARLIEST


@pytest.mark.parametrize("end", ["deleted", "stopped", "owner gone"])
def test_the_end_of_many_goes_on_behind_one_whose_gateway_cannot_be_told(
    bench: Any, pushes: list[ReaderClosed], end: str, caplog: pytest.LogCaptureFixture
) -> None:
    faulty, other = open_reader(bench), open_reader(bench)
    bench.broker.submit(ReadEvents("a", faulty, 100, 60_000), planted)
    read = bench.ask(ReadEvents("a", other, 100, 60_000))
    bench.log.save_snapshot = lambda state, on_done: None  # producers wait for it
    bench.broker.submit(OpenProducer("a", ME, 7, 0, 0), planted)
    producer = bench.ask(OpenProducer("a", ME, 8, 0, 0))
    assert read == producer == []
    if end == "stopped":
        producer.append(Done())  # the end of the snapshot tells it
    elif end == "deleted":
        assert bench.ask(DeletePartition("a")) == [Done()]
        assert [push.reader_id for push in pushes] == [faulty, other] and bench.store.logs == {}
    else:
        assert bench.ask(CloseOwner(ME)) == [Done()]
    stopped: list[bool] = []
    if end != "stopped":
        (counted,) = bench.ask(AskCounters())
        assert counted.values["broker.reader_faults"] == 1 and counted.values["broker.readers"] == 0
    bench.broker.stop(lambda: stopped.append(True))
    assert (len(read), len(producer), stopped) == (1, 1, [True]) and "planted" in caplog.text


def test_a_reader_is_opened_in_the_place_of_those_whose_gateways_cannot_be_told(
    bench: Any, pushes: list[ReaderClosed]
) -> None:
    """The first has a read outstanding, the second was never answered."""
    (first,) = bench.ask(OpenReader("a", ME, "$Default", EARLIEST, 1, None))
    bench.broker.submit(ReadEvents("a", first.reader_id, 100, 60_000), planted)
    bench.broker.submit(OpenReader("a", ME, "$Default", EARLIEST, 2, None), planted)
    third = bench.ask(OpenReader("a", ME, "$Default", EARLIEST, 3, None))
    assert [push.reader_id for push in pushes] == [first.reader_id] and third == []
    bench.env.pass_time(2_000)
    (opened,) = third
    assert isinstance(opened, ReaderOpened)


def test_a_reader_whose_gateway_cannot_be_told_that_it_is_open_is_closed(
    bench: Any, pushes: list[ReaderClosed]
) -> None:
    bench.broker.submit(OpenReader("a", ME, "$Default", EARLIEST, None, None), planted)
    assert [push.condition.symbol for push in pushes] == ["amqp:internal-error"]
    (counted,) = bench.ask(AskCounters())
    assert counted.values["broker.readers"] == 0
