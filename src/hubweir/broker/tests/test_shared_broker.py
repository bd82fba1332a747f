"""A broker that several processes ask: who is left behind when it takes no more streams."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.commands.process import Done
from hubweir.broker.shared_broker import SharedBroker
from hubweir.testing.event_loops import run_on


class Target:
    """Does whatever it is asked."""

    on_push: Callable[[Push], None] | None = None

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        on_answer(Done())


def test_a_stream_that_was_accepted_as_the_broker_left_is_ended(tmp_path: Path) -> None:
    """Its process would wait for answers of a store that is away, and never look for the next broker of it."""

    async def scenario() -> None:
        shared, (accepted, peer) = SharedBroker(Target()), socket.socketpair()
        accepted.setblocking(False)
        peer.setblocking(False)
        shared.serve(tmp_path / "broker-1.sock")
        shared._accepted(accepted)
        shared.leave()
        with peer:
            async with asyncio.timeout(30):
                assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""
        await shared.close()

    run_on("asyncio", scenario())
