"""Frames over a socket pair: cut anywhere, joined again, bounded."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers.broker_driver import LENGTH, RECEIVE_BYTES, BrokerDriver, connect
from hubweir.errors import HubweirError

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Host:
    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.kept: list[memoryview] = []
        self.closed = asyncio.Event()
        self.paused = 0
        self.refuse = False

    def on_frame(self, frame: memoryview) -> None:
        if self.refuse:
            raise HubweirError("planted")
        self.frames.append(bytes(frame))
        self.kept.append(frame)

    def on_writing_paused(self) -> None:
        self.paused += 1

    def on_writable(self) -> None:
        self.paused -= 1

    def on_closed(self) -> None:
        self.closed.set()


def frame(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


async def pair(limit: int = 1 << 24) -> tuple[BrokerDriver, Host, Host]:
    ours, theirs = socket.socketpair()
    sender, receiver = Host(), Host()
    for end in (ours, theirs):
        end.setblocking(False)
    driver = await connect(ours, lambda: BrokerDriver(sender, frame_limit_bytes=limit))
    await connect(theirs, lambda: BrokerDriver(receiver, frame_limit_bytes=limit))
    return driver, sender, receiver


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def test_frames_of_every_size_come_whole_in_order_and_stay_as_they_are(run: Run) -> None:
    async def scenario() -> None:
        driver, _, receiver = await pair()
        sizes = [0, 1, 100, RECEIVE_BYTES - 4, RECEIVE_BYTES - 3, 5, RECEIVE_BYTES * 3, 7, RECEIVE_BYTES - 5, 0]
        sent = [frame(bytes([number]) * size) for number, size in enumerate(sizes, start=1)]
        for each in sent:
            driver.send([each[:4], each[4:]])
        await until(lambda: len(receiver.frames) == len(sent))
        assert receiver.frames == sent
        assert [bytes(kept) for kept in receiver.kept] == sent
        driver.close()
        await receiver.closed.wait()

    run(scenario())


@pytest.mark.parametrize("piece", [1, 3, 4, 5, 11])
def test_a_stream_may_be_cut_anywhere(run: Run, piece: int) -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        receiver = Host()
        theirs.setblocking(False)
        await connect(theirs, lambda: BrokerDriver(receiver, frame_limit_bytes=100))
        sent = [frame(b"x" * size) for size in (0, 3, 9, 1)]
        stream = b"".join(sent)
        for at in range(0, len(stream), piece):
            ours.send(stream[at : at + piece])
            await asyncio.sleep(0)
        await until(lambda: len(receiver.frames) == len(sent))
        assert receiver.frames == sent
        ours.close()
        await receiver.closed.wait()

    run(scenario())


@pytest.mark.parametrize("size", [100, 101])
def test_a_frame_over_the_limit_ends_the_stream(run: Run, size: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        driver, _, receiver = await pair(limit=100)
        driver.send([frame(b"x" * size)])
        await until(lambda: bool(receiver.frames) or receiver.closed.is_set())
        assert bool(receiver.frames) == (size == 100)
        driver.abort()
        await receiver.closed.wait()

    run(scenario())
    assert ("over the limit" in caplog.text) == (size == 101)


def test_a_frame_that_the_host_refuses_ends_the_stream(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        driver, sender, receiver = await pair()
        receiver.refuse = True
        driver.send([frame(b"x")])
        await receiver.closed.wait()
        await sender.closed.wait()
        driver.send([frame(b"after the end")])

    run(scenario())
    assert "planted" in caplog.text


def test_a_peer_that_does_not_read_pauses_writing_and_reading_it_resumes(run: Run) -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        sender, receiver = Host(), Host()
        for end in (ours, theirs):
            end.setblocking(False)
        driver = await connect(ours, lambda: BrokerDriver(sender, frame_limit_bytes=1 << 24))
        reading = await connect(theirs, lambda: BrokerDriver(receiver, frame_limit_bytes=1 << 24))
        reading.pause_reading()
        for _ in range(30):
            driver.send([frame(b"x" * 100_000)])
        await until(lambda: sender.paused == 1)
        reading.resume_reading()
        await until(lambda: sender.paused == 0 and len(receiver.frames) == 30)
        driver.close()
        await receiver.closed.wait()

    run(scenario())
