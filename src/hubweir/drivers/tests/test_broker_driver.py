"""Frames over a socket pair: cut anywhere, joined again, bounded."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from itertools import pairwise, product
from typing import Any

import pytest

from hubweir.drivers.broker_driver import LENGTHS, RECEIVE_BYTES, SMALL_FRAME_BYTES, BrokerDriver, connect_stream
from hubweir.errors import HubweirError

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Host:
    def __init__(self) -> None:
        self.frames: list[tuple[bytes, bytes]] = []
        self.kept: list[bytearray] = []
        self.closed = asyncio.Event()
        self.paused = 0
        self.refuse = False

    def on_frame(self, head: memoryview, body: bytearray) -> None:
        if self.refuse:
            raise HubweirError("planted")
        self.frames.append((bytes(head), bytes(body)))
        self.kept.append(body)

    def on_writing_paused(self) -> None:
        self.paused += 1

    def on_writable(self) -> None:
        self.paused -= 1

    def on_closed(self) -> None:
        self.closed.set()


class Counted(BrokerDriver):
    """Says how many bytes it received."""

    received = 0

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes
        super().buffer_updated(nbytes)


def frame(head: bytes, body: bytes = b"") -> bytes:
    return LENGTHS.pack(len(head), len(body)) + head + body


async def pair(limit: int = 1 << 24) -> tuple[BrokerDriver, Host, Host]:
    ours, theirs = socket.socketpair()
    sender, receiver = Host(), Host()
    for end in (ours, theirs):
        end.setblocking(False)
    driver = await connect_stream(ours, lambda: BrokerDriver(sender, frame_limit_bytes=limit))
    await connect_stream(theirs, lambda: BrokerDriver(receiver, frame_limit_bytes=limit))
    return driver, sender, receiver


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def test_frames_of_every_size_come_whole_in_order_and_stay_as_they_are(run: Run) -> None:
    async def scenario() -> None:
        driver, _, receiver = await pair()
        sizes = [0, 1, 100, SMALL_FRAME_BYTES, RECEIVE_BYTES - 9, RECEIVE_BYTES - 8, 5, RECEIVE_BYTES * 3, 7, 0]
        sent = [
            (bytes([number]) * head, bytes([number + 100]) * body)
            for number, (head, body) in enumerate(product(sizes, sizes), start=1)
        ]
        for head, body in sent:
            driver.send([frame(head, body)[: LENGTHS.size + len(head)], body])
        await until(lambda: len(receiver.frames) == len(sent))
        assert receiver.frames == sent
        assert receiver.kept == [body for _, body in sent]
        assert len({id(kept) for kept in receiver.kept}) == len(sent)
        receiver.kept[-2].append(1)  # nobody else holds it
        driver.close()
        await receiver.closed.wait()

    run(scenario())


@pytest.mark.parametrize("piece", [1, 3, 4, 5, 11])
def test_a_stream_may_be_cut_anywhere(run: Run, piece: int) -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        receiver = Host()
        theirs.setblocking(False)
        await connect_stream(theirs, lambda: BrokerDriver(receiver, frame_limit_bytes=100))
        sent = [(b"x" * head, b"y" * body) for head, body in ((0, 0), (3, 0), (9, 4), (0, 1), (1, 7))]
        stream = b"".join(frame(head, body) for head, body in sent)
        for at in range(0, len(stream), piece):
            ours.send(stream[at : at + piece])
            await asyncio.sleep(0)
        await until(lambda: len(receiver.frames) == len(sent))
        assert receiver.frames == sent
        ours.close()
        await receiver.closed.wait()

    run(scenario())


@pytest.mark.parametrize("head", [0, 40, 100])
@pytest.mark.parametrize("size", [100, 101])
def test_a_frame_over_the_limit_ends_the_stream(
    run: Run, head: int, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        driver, _, receiver = await pair(limit=100)
        driver.send([frame(b"x" * head, b"y" * (size - head))])
        await until(lambda: bool(receiver.frames) or receiver.closed.is_set())
        assert bool(receiver.frames) == (size == 100)
        driver.abort()
        await receiver.closed.wait()

    run(scenario())
    assert ("over the limit" in caplog.text) == (size == 101)


@pytest.mark.parametrize(("head", "body"), [(10, 200), (200, 10), (200, 200), (200, 0), (0, 200)])
def test_a_large_frame_may_be_cut_anywhere_and_small_ones_stand_around_it(run: Run, head: int, body: int) -> None:
    sent = [(b"a", b""), (bytes(range(256)) * head, bytes(reversed(range(256))) * body), (b"", b"b")]
    stream = b"".join(frame(*each) for each in sent)
    starts_at = len(frame(b"a"))
    head_at = starts_at + LENGTHS.size
    body_at = head_at + 256 * head
    ends_at = body_at + 256 * body

    async def scenario(*cuts: int) -> None:
        ours, theirs = socket.socketpair()
        receiver = Host()
        theirs.setblocking(False)
        driver = Counted(receiver, frame_limit_bytes=1 << 24)
        await connect_stream(theirs, lambda: driver)
        for begin, end in pairwise((0, *cuts, len(stream))):
            ours.send(stream[begin:end])
            while driver.received < end:
                await asyncio.sleep(0)
        assert receiver.frames == sent
        ours.close()
        await receiver.closed.wait()

    for cut in (head_at - 1, head_at, head_at + 1, body_at, body_at + 1, ends_at - 1, ends_at, ends_at + 1):
        run(scenario(cut))
        run(scenario(starts_at, cut, min(cut + 5_000, len(stream) - 1)))


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
        driver = await connect_stream(ours, lambda: BrokerDriver(sender, frame_limit_bytes=1 << 24))
        reading = await connect_stream(theirs, lambda: BrokerDriver(receiver, frame_limit_bytes=1 << 24))
        reading.pause_reading()
        for _ in range(100):
            driver.send([frame(b"x" * 100_000)])
        await until(lambda: sender.paused == 1)
        reading.resume_reading()
        await until(lambda: sender.paused == 0 and len(receiver.frames) == 100)
        driver.close()
        await receiver.closed.wait()

    run(scenario())


def test_a_socket_that_gets_no_driver_is_closed(run: Run) -> None:
    def refused() -> BrokerDriver:
        raise OSError("planted")

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs, pytest.raises(OSError, match="planted"):
            await connect_stream(ours, refused)
        assert ours.fileno() == -1

    run(scenario())
