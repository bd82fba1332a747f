"""Binding is plain and its errors name the address; accepting survives a full descriptor table."""

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers import listening_socket
from hubweir.drivers.listening_socket import AcceptLoop, AddressTaken, bind, hold_address

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def test_a_second_server_on_the_same_port_is_refused_with_the_address() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(AddressTaken, match=rf"127\.0\.0\.1 port {port}.*another process"):
            bind("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_refused_with_the_way_out() -> None:
    with pytest.raises(AddressTaken, match="--host"):
        bind("203.0.113.7", 0)
    with pytest.raises(AddressTaken, match="--host"):
        bind("no such host.invalid", 0)


def test_two_addresses_may_use_the_same_port() -> None:
    with bind("127.0.0.2", 0) as first, bind("127.0.0.3", first.getsockname()[1]) as second:
        assert first.getsockname()[1] == second.getsockname()[1]


def test_connections_come_in_without_delay_and_non_blocking(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        accepted: asyncio.Future[socket.socket] = loop.create_future()
        listener = bind("127.0.0.1", 0)
        accepting = AcceptLoop(listener, accepted.set_result, loop)
        with socket.create_connection(listener.getsockname()), await accepted as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert not connection.getblocking()
        accepting.close()
        with pytest.raises(OSError):
            listener.getsockname()

    run(scenario())


class FullTable:
    """A listener whose first accepts fail as they do when descriptors run out."""

    def __init__(self, real: socket.socket, failures: int) -> None:
        self.real = real
        self.failures = failures

    def accept(self) -> Any:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self.real.accept()

    def fileno(self) -> int:
        return self.real.fileno()

    def close(self) -> None:
        self.real.close()


def test_accepting_goes_on_after_descriptors_ran_out(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening_socket, "ACCEPT_PAUSE_S", 0.02)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        accepted: asyncio.Future[socket.socket] = loop.create_future()
        listener = bind("127.0.0.1", 0)
        full = FullTable(listener, failures=2)
        accepting = AcceptLoop(full, accepted.set_result, loop)  # type: ignore[arg-type]
        with socket.create_connection(listener.getsockname()):
            (await accepted).close()
        accepting.close()

    run(scenario())
    assert caplog.text.count("Too many open files") == 2


def test_processes_share_an_address_that_is_held_and_nobody_else_gets_it() -> None:
    with hold_address("127.0.0.1", 0, is_free=True) as held:
        port = held.getsockname()[1]
        with bind("127.0.0.1", port, is_shared=True), bind("127.0.0.1", port, is_shared=True):
            with pytest.raises(AddressTaken, match=f"port {port}: another process does"):
                bind("127.0.0.1", port)
            with pytest.raises(AddressTaken, match=f"port {port}: another process does"):
                hold_address("127.0.0.1", port, is_free=True)
            hold_address("127.0.0.1", port, is_free=False).close()


def test_an_address_that_is_held_takes_no_connection_itself() -> None:
    with hold_address("127.0.0.1", 0, is_free=True) as held, socket.socket() as client:
        with pytest.raises(ConnectionRefusedError):
            client.connect(held.getsockname())
        with bind("127.0.0.1", held.getsockname()[1], is_shared=True) as listener:
            clients = [socket.create_connection(held.getsockname()) for _ in range(20)]
            for each in clients:
                listener.setblocking(True)
                listener.accept()[0].close()
                each.close()
