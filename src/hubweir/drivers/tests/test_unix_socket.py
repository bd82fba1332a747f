"""Sockets between the processes of one service: a path is taken over from the dead, and from nobody else."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from hubweir.drivers import unix_socket
from hubweir.drivers.listening_socket import AddressTaken
from hubweir.drivers.unix_socket import UnixListener, connect_unix, listener_pid, peer_pid

Run = Callable[[Coroutine[Any, Any, Any]], Any]


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def test_who_connects_reaches_who_listens_and_each_knows_the_others_process(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        accepted: list[socket.socket] = []
        listener = UnixListener(tmp_path / "a", accepted.append, asyncio.get_running_loop())
        ours = connect_unix(tmp_path / "a")
        await until(lambda: bool(accepted))
        assert not ours.getblocking()
        assert not accepted[0].getblocking()
        assert peer_pid(ours) == peer_pid(accepted[0]) == os.getpid()
        for each in (ours, *accepted):
            each.close()
        listener.close()

    run(scenario())


def test_a_path_that_a_dead_process_left_is_taken_over(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(tmp_path / "a"))
        left.close()
        assert listener_pid(tmp_path / "a") is None
        listener = UnixListener(tmp_path / "a", lambda connection: connection.close(), asyncio.get_running_loop())
        assert listener_pid(tmp_path / "a") == os.getpid()
        listener.close()
        assert not (tmp_path / "a").exists()

    run(scenario())


def test_a_path_on_which_somebody_listens_is_not_taken(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = UnixListener(tmp_path / "a", lambda connection: connection.close(), asyncio.get_running_loop())
        with pytest.raises(AddressTaken, match="another process listens on .*/a"):
            UnixListener(tmp_path / "a", lambda connection: connection.close(), asyncio.get_running_loop())
        assert listener_pid(tmp_path / "a") == os.getpid()
        first.close()

    run(scenario())


def test_nobody_listens_where_there_is_no_path(tmp_path: Path) -> None:
    assert listener_pid(tmp_path / "a") is None
    with pytest.raises(FileNotFoundError):
        connect_unix(tmp_path / "a")


def test_a_path_that_is_too_long_is_refused_with_its_name(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(AddressTaken, match="cannot listen on"):
            UnixListener(tmp_path / ("a" * 120), lambda connection: None, asyncio.get_running_loop())

    run(scenario())


@pytest.mark.skipif(os.getuid() != 0, reason="only root's sockets can be told from another user's here")
def test_another_users_process_is_turned_away(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        accepted: list[socket.socket] = []
        listener = UnixListener(tmp_path / "a", accepted.append, asyncio.get_running_loop())
        ours = connect_unix(tmp_path / "a")
        monkeypatch.setattr(unix_socket, "is_trusted", lambda user: False)
        with pytest.raises(PermissionError, match="belongs to user 0"):
            connect_unix(tmp_path / "a")
        ours.setblocking(True)
        assert await asyncio.to_thread(ours.recv, 1) == b""
        assert accepted == []
        ours.close()
        listener.close()

    run(scenario())
