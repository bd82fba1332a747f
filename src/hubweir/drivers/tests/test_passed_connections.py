"""Connections that one process accepted and another one takes: whole, with what was sent meanwhile, or not at all."""

import array
import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubweir.drivers import passed_connections
from hubweir.drivers.passed_connections import TAKEN_WITHIN_S, PassedConnections, PassingOn

Run = Callable[[Coroutine[Any, Any, Any]], Any]
MANY = 2_000  # more than any system lets wait


def pass_on(connection: socket.socket, path: Path) -> bool:
    """Once, over a way of its own."""
    way = PassingOn(path, lambda: 0.0)
    try:
        return way.pass_on(connection)
    finally:
        way.close()


@contextmanager
def accepted() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client and the end of it that was accepted."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        ours, _ = listener.accept()
        ours.setblocking(False)
        with ours:
            yield client, ours


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def test_a_connection_comes_with_what_was_sent_before_it_was_taken(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        came: list[socket.socket] = []
        inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())
        with accepted() as (client, ours):
            name = ours.getpeername()
            client.sendall(b"before")
            assert pass_on(ours, tmp_path / "c")
            assert ours.fileno() == -1
            await until(lambda: bool(came))
            [taken] = came
            assert taken.getpeername() == name and taken.family is socket.AF_INET
            assert taken.recv(100) == b"before"
            assert taken.gettimeout() == 0, "a loop takes none that may block"
            with pytest.raises(BlockingIOError):
                taken.recv(100)
            assert not os.get_inheritable(taken.fileno())
            taken.close()
            assert client.recv(1) == b""  # nobody else holds it
        inbox.close()

    run(scenario())


def test_it_is_closed_once_however_often_a_stop_says_so(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        inbox = PassedConnections(tmp_path / "c", lambda connection: None, asyncio.get_running_loop())
        inbox.close()
        other = PassedConnections(tmp_path / "c", lambda connection: None, asyncio.get_running_loop())
        inbox.close()
        assert (tmp_path / "c").exists(), "the path is another process's by now"
        other.close()

    run(scenario())


def test_where_nobody_takes_connections_they_stay(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        with accepted() as (client, ours):
            assert not pass_on(ours, tmp_path / "nobody")
            inbox = PassedConnections(tmp_path / "c", lambda _: None, asyncio.get_running_loop())
            inbox.close()
            assert not pass_on(ours, tmp_path / "c")
            dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            dead.bind(str(tmp_path / "dead"))
            dead.close()  # as a killed process: its path is there
            assert not pass_on(ours, tmp_path / "dead")
            ours.send(b"still ours")
            assert client.recv(100) == b"still ours"

    run(scenario())


def test_a_process_that_takes_none_is_given_few_and_what_waits_is_taken_at_the_end(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        came: list[socket.socket] = []
        inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())
        passed = 0
        with accepted() as (_, ours):  # the loop does not turn meanwhile, so nothing is taken
            while pass_on(copy := ours.dup(), tmp_path / "c"):
                passed += 1
                assert passed < MANY
            copy.close()
            assert passed > 1
            inbox.close()
        assert len(came) == passed
        for taken in came:
            taken.close()

    run(scenario())


def test_all_that_waits_is_taken_at_the_end_however_many_the_system_lets_wait(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system of a test may let ten wait, that of others 512; one is taken a turn here."""
    monkeypatch.setattr(passed_connections, "ACCEPTS_A_TURN", 1)

    async def scenario() -> None:
        came: list[socket.socket] = []
        inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())
        with accepted() as (_, ours):
            for _ in range(3):
                assert pass_on(ours.dup(), tmp_path / "c")
            inbox.close()
        assert len(came) == 3
        for taken in came:
            taken.close()

    run(scenario())


def test_a_process_that_has_not_taken_what_was_passed_within_the_time_is_given_no_more_until_it_does(
    run: Run, tmp_path: Path
) -> None:
    async def scenario() -> None:
        now_s = 100.0
        came: list[socket.socket] = []
        way = PassingOn(tmp_path / "c", lambda: now_s)
        inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())

        def passes() -> bool:
            copy = ours.dup()
            is_passed = way.pass_on(copy)
            assert (copy.fileno() == -1) == is_passed
            copy.close()
            return is_passed

        with accepted() as (_, ours):  # the loop turns only where this waits
            assert passes()
            now_s += TAKEN_WITHIN_S - 0.001
            assert passes()
            now_s += 0.001
            assert not passes() and not passes()
            await until(lambda: len(came) == 2)
            assert passes()  # its time begins anew
            now_s += TAKEN_WITHIN_S - 0.001
            assert passes()
            await until(lambda: len(came) == 4)
            now_s += 10 * TAKEN_WITHIN_S
            assert passes()  # nothing waited meanwhile
            await until(lambda: len(came) == 5)
        for taken in came:
            taken.close()
        inbox.close()
        way.close()

    run(scenario())


def test_a_process_that_ended_before_it_took_anything_does_not_keep_the_next_one_from_being_given_some(
    run: Run, tmp_path: Path
) -> None:
    async def scenario() -> None:
        now_s = 0.0
        way = PassingOn(tmp_path / "c", lambda: now_s)
        with accepted() as (client, ours), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stalled:
            stalled.bind(str(tmp_path / "c"))
            assert way.pass_on(ours)
            now_s += TAKEN_WITHIN_S
            with accepted() as (_, second):
                assert not way.pass_on(second)
                stalled.close()
                client.settimeout(10)
                assert client.recv(1) == b""  # ended with the process, and not before
                came: list[socket.socket] = []
                inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())
                assert way.pass_on(second)
                await until(lambda: bool(came))
                came[0].close()
                inbox.close()
        way.close()

    run(scenario())


def test_of_several_connections_in_one_datagram_none_stays_open(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What has room for one descriptor has room for two: the system rounds up."""

    async def scenario() -> None:
        came: list[socket.socket] = []
        inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())
        with accepted() as (client, ours):
            both = array.array("i", [ours.fileno(), ours.fileno()])
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendmsg([b"c"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, both)], 0, str(tmp_path / "c"))
            ours.close()
            client.settimeout(10)
            assert await asyncio.to_thread(client.recv, 1) == b""
        assert not came
        inbox.close()

    run(scenario())
    assert "one at a time" in caplog.text


def test_a_new_process_takes_over_the_path_of_a_dead_one(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        came: list[socket.socket] = []
        loop = asyncio.get_running_loop()
        dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        dead.bind(str(tmp_path / "c"))
        dead.close()
        inbox = PassedConnections(tmp_path / "c", came.append, loop)
        with accepted() as (_, ours):
            assert pass_on(ours, tmp_path / "c")
            await until(lambda: bool(came))
            came[0].close()
        inbox.close()

    run(scenario())


def test_what_another_user_passes_is_closed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    users: list[int] = []

    def is_trusted(user: int) -> bool:
        users.append(user)
        return False

    monkeypatch.setattr(passed_connections, "is_trusted", is_trusted)

    async def scenario() -> None:
        came: list[socket.socket] = []
        inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())
        with accepted() as (client, ours):
            assert pass_on(ours, tmp_path / "c")
            client.settimeout(10)
            await asyncio.to_thread(lambda: client.recv(1) == b"" or pytest.fail("it is open"))
        assert not came
        inbox.close()

    run(scenario())
    assert users == [os.getuid()]
    assert "closed" in caplog.text


def test_a_datagram_without_a_connection_is_told_and_the_next_one_taken(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        came: list[socket.socket] = []
        inbox = PassedConnections(tmp_path / "c", came.append, asyncio.get_running_loop())
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"c", str(tmp_path / "c"))
        with accepted() as (_, ours):
            assert pass_on(ours, tmp_path / "c")
            await until(lambda: bool(came))
            came[0].close()
        inbox.close()

    run(scenario())
    assert "is lost" in caplog.text
