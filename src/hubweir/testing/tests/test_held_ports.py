"""A held port is given to nobody but to the server that it was taken for."""

from __future__ import annotations

import gc
import socket
import sys

import pytest

from hubweir.testing.held_ports import HeldPorts

TRIES = 5_000  # the system draws one of some 14,000 ports for each

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems hold no port for a server")


def drawn() -> set[int]:
    """The ports that a machine gives to those who ask for any."""
    ports = set()
    for _ in range(TRIES):
        with socket.socket() as asking:
            asking.bind(("127.0.0.1", 0))
            ports.add(asking.getsockname()[1])
    return ports


def test_a_port_is_given_to_nobody_else_until_the_object_is_gone() -> None:
    """The control arm: each is given to somebody again when nothing holds it."""
    held = HeldPorts(50)
    numbers = set(held.numbers)
    assert len(numbers) == 50 and all(port > 1023 for port in numbers)
    assert not numbers & drawn()
    del held
    gc.collect()
    assert numbers & drawn()


def test_a_server_listens_there_as_often_as_it_is_started_and_nobody_answers_between() -> None:
    held = HeldPorts()
    address = ("127.0.0.1", held.numbers[0])
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        with socket.create_server(address), socket.create_connection(address), pytest.raises(OSError, match="in use"):
            socket.create_server(address)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(address)


def test_a_host_that_is_no_address_leaves_no_socket_open() -> None:
    with pytest.raises(OSError):
        HeldPorts(2, "192.0.2.1")
