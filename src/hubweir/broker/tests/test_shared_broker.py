"""A broker that several processes ask: who is left behind when it takes no more streams."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.broker import shared_broker
from hubweir.broker.commands.command import Answer, Command, Owner, Push
from hubweir.broker.commands.process import CloseOwner, Done
from hubweir.broker.commands.reader import OpenReader, ReaderClosed
from hubweir.broker.shared_broker import SharedBroker
from hubweir.broker.wire import encode_frame
from hubweir.drivers.unix_socket import connect_unix
from hubweir.errors import LINK_STOLEN
from hubweir.event_hub.event_position import EARLIEST
from hubweir.testing.event_loops import LOOPS, run_on


class Target:
    """Does whatever it is asked, and keeps that."""

    def __init__(self) -> None:
        self.on_push: Callable[[Push], None] | None = None
        self.asked: list[Command] = []

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append(command)
        on_answer(Done())


def accepting(folder: Path) -> tuple[SharedBroker, socket.socket]:
    """A broker that serves and has just accepted a stream, which is not connected yet; and the other end of that."""
    shared, (accepted, peer) = SharedBroker(Target()), socket.socketpair()
    accepted.setblocking(False)
    peer.setblocking(False)
    shared.serve(folder / "broker-1.sock")
    shared._accepted(accepted)
    return shared, peer


def test_a_peer_that_takes_nothing_is_let_go_and_what_its_process_had_open_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits to be sent would else keep the stream of a stalled process for as long as that is there."""
    monkeypatch.setattr(shared_broker, "END_S", 0.1)

    async def scenario() -> None:
        target = Target()
        shared = SharedBroker(target)
        shared.serve(tmp_path / "broker-1.sock")
        with connect_unix(tmp_path / "broker-1.sock") as stalled:
            stalled.send(b"".join(encode_frame(1, OpenReader("a", Owner(7, 1), "g", EARLIEST, None, "me"))))
            while not target.asked:
                await asyncio.sleep(0.001)
            push = ReaderClosed(Owner(7, 1), "a", 1, LINK_STOLEN, "x" * 1_000_000)
            assert target.on_push is not None
            for _ in range(8):  # more than the system takes for another process
                target.on_push(push)
            async with asyncio.timeout(10):
                await shared.close()
            assert target.asked[-1] == CloseOwner(Owner(7, -1))

    run_on("asyncio", scenario())


def test_a_stream_that_was_accepted_as_the_broker_left_is_ended(tmp_path: Path) -> None:
    """Its process would wait for answers of a store that is away, and never look for the next broker of it."""

    async def scenario() -> None:
        shared, peer = accepting(tmp_path)
        shared.leave()
        with peer:
            async with asyncio.timeout(30):
                assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""
        await shared.close()

    run_on("asyncio", scenario())


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("loop", LOOPS)
def test_a_close_ends_a_stream_that_was_accepted_at_any_turn_before_it(loop: str, turns: int, tmp_path: Path) -> None:
    """It waited for ever for one that was not connected yet: a broker process stops behind it."""

    async def scenario() -> None:
        shared, peer = accepting(tmp_path)
        for _ in range(turns):
            await asyncio.sleep(0)
        with peer:
            async with asyncio.timeout(10):
                await shared.close()
                assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""

    run_on(loop, scenario())
