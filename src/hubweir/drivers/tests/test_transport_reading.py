"""When a transport is told to stop reading, and when to go on."""

from __future__ import annotations

import asyncio

import pytest

from hubweir.drivers.transport_reading import Pause, TransportReading


class Transport(asyncio.ReadTransport):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.closes = False

    def is_closing(self) -> bool:
        return self.closes

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")


@pytest.fixture
def transport() -> Transport:
    return Transport()


@pytest.fixture
def reading(transport: Transport) -> TransportReading:
    made = TransportReading()
    made.begin(transport)
    return made


@pytest.mark.parametrize("first", Pause)
@pytest.mark.parametrize("second", Pause)
def test_a_transport_is_read_again_when_the_last_reason_is_gone(
    reading: TransportReading, transport: Transport, first: Pause, second: Pause
) -> None:
    reading.pause(first)
    reading.pause(second)
    assert transport.told == ["pause"]
    reading.go_on(first)
    assert transport.told == (["pause", "resume"] if first is second else ["pause"])
    reading.go_on(second)
    assert transport.told == ["pause", "resume"]


def test_a_reason_that_was_there_first_holds_when_the_transport_comes(transport: Transport) -> None:
    reading = TransportReading()
    reading.pause(Pause.HOST)
    reading.begin(transport)
    assert transport.told == ["pause"]


def test_before_its_end_a_transport_is_read_whatever_was_against_it(
    reading: TransportReading, transport: Transport
) -> None:
    for reason in Pause:
        reading.pause(reason)
    reading.go_on_for_good()
    assert transport.told == ["pause", "resume"]


def test_a_transport_that_closes_is_told_nothing(reading: TransportReading, transport: Transport) -> None:
    transport.closes = True
    reading.pause(Pause.HOST)
    reading.go_on(Pause.HOST)
    assert transport.told == []
