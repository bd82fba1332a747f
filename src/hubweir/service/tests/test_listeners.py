"""Ports that several processes share: what a process takes before it lets its clients go, and what it takes after."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from hubweir.drivers.listening_socket import AddressTaken
from hubweir.drivers.passed_connections import PassingOn
from hubweir.service.service import Service
from hubweir.service.tests.started_service import settings
from hubweir.testing.event_loops import run_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="broker processes are for Linux")


def unix_sockets() -> int:
    """How many this process has open."""
    known = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    open_here = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    targets = [os.readlink(each) for each in open_here if each.is_symlink()]
    return sum(each.startswith("socket:[") and each[8:-1] in known for each in targets)


def test_who_lets_clients_go_takes_none_of_another_process_and_holds_no_way_to_one(tmp_path: Path) -> None:
    """A connection that was passed to it then would be one that nobody reads."""

    async def scenario() -> None:
        service = await Service.start(settings(tmp_path))
        before = unix_sockets()
        listeners = service._listeners
        listeners.share([("127.0.0.1", 0)], [tmp_path / "0", tmp_path / "1"], 1)
        assert unix_sockets() == before + 2
        way = PassingOn(tmp_path / "1", lambda: 0.0)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            with socket.create_connection(listener.getsockname()) as client:
                client.setblocking(False)
                ours, _ = listener.accept()
                assert way.pass_on(ours)
                await asyncio.get_running_loop().sock_sendall(client, b"AMQP\x00\x01\x00\x00")
                assert await asyncio.get_running_loop().sock_recv(client, 4) == b"AMQP"
            await listeners.close(grace_ms=0)
            with socket.create_connection(listener.getsockname()):
                ours, _ = listener.accept()
                with ours:
                    assert not way.pass_on(ours)
        way.close()
        assert unix_sockets() == before
        await service.stop()

    run_on("asyncio", scenario())


def test_an_address_that_is_taken_leaves_nothing_open_and_may_be_tried_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path))
        listeners, paths = service._listeners, [tmp_path / "0", tmp_path / "1"]
        before = unix_sockets()
        with socket.create_server(("127.0.0.1", 0)) as other:
            with pytest.raises(AddressTaken):
                listeners.share([("127.0.0.1", 0), other.getsockname()], paths, 1)
            assert unix_sockets() == before
        listeners.share([("127.0.0.1", 0)], paths, 1)
        assert unix_sockets() == before + 2
        await service.stop()

    run_on("asyncio", scenario())
