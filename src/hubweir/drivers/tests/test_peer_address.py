import socket

import pytest

from hubweir.drivers.peer_address import address_text, is_local


@pytest.mark.parametrize(
    ("address", "local"),
    [
        (("127.0.0.1", 5672), True),
        (("127.200.3.4", 5672), True),
        (("::1", 5672, 0, 0), True),
        (("::ffff:127.0.0.1", 5672, 0, 0), True),
        ("", True),
        ("/run/a.socket", True),
        (b"\0name", True),
        (("10.0.0.1", 5672), False),
        (("0.0.0.0", 5672), False),
        (("::ffff:10.0.0.1", 5672, 0, 0), False),
        (("fe80::1%eth0", 5672, 0, 2), False),
        (("localhost", 5672), False),  # a name is no address
        ((), False),
        (None, False),
    ],
)
def test_only_this_machine_is_local(address: object, local: bool) -> None:
    assert is_local(address) is local


def test_the_ends_of_a_socket_pair_are_local() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert is_local(one.getpeername())


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (("127.0.0.1", 5672), "127.0.0.1:5672"),
        (("::1", 5672, 0, 0), "[::1]:5672"),
        ("/run/a.socket", "/run/a.socket"),
        ("", "a closed or local socket"),
        (None, "a closed or local socket"),
    ],
)
def test_an_address_in_words(address: object, text: str) -> None:
    assert address_text(address) == text
