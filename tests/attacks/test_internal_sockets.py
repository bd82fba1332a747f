"""Attack 89: whoever is not the service's own user talks to brokers and supervisor directly.

There is no greeting that could be replayed (attack 90): what tells a peer is its user id, which the kernel says; that
one who reaches a socket is turned away is tried in src/hubweir/drivers/tests/test_unix_socket.py. The positive control
is the same frame from the service's own user, which is answered. Another user takes root to be played.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubweir.broker.commands.process import AskCounters
from hubweir.broker.wire import encode_frame
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.testing.running_namespace import running_namespace

BROKERS, NOBODY, WAIT_S = 2, 65_534, 30
FRAME = b"".join(bytes(part) for part in encode_frame(1, AskCounters()))
# Says what came of a connection: refused by the folder, or how many bytes an answer had.
TALK = """
import os, socket, sys
os.setgroups([]); os.setgid({user}); os.setuid({user})
with socket.socket(socket.AF_UNIX) as peer:
    peer.settimeout({wait})
    try:
        peer.connect({path!r})
        peer.sendall(bytes.fromhex({frame!r}))
        print(len(peer.recv(65536)))
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if os.getuid() != 0:
        pytest.skip("to be another user takes root: attack 89 is NOT run")
    data = tmp_path_factory.mktemp("inside")
    with running_namespace(data=str(data), brokers=BROKERS) as namespace:
        namespace.create_event_hub("orders")
        yield RuntimeFolder.of(str(data)).path


SPEAKERS = {"broker", "process", "keeper"}


def sockets(folder: Path) -> list[Path]:
    """Those on which frames are answered."""
    found = [path for path in sorted(folder.glob("*.sock")) if path.stem.partition("-")[0] in SPEAKERS]
    assert {path.stem.partition("-")[0] for path in found} == SPEAKERS
    return found


def as_stranger(path: Path) -> str:
    """What somebody else hears: the bytes of an answer, or the name of an error."""
    script = TALK.format(user=NOBODY, wait=WAIT_S, path=str(path), frame=FRAME.hex())
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def as_ourselves(path: Path) -> int:
    """How many bytes an answer has."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(WAIT_S)
        peer.connect(str(path))
        peer.sendall(FRAME)
        (length,) = struct.unpack(">I", peer.recv(4))
        return int(length)


def test_89_no_internal_socket_is_reached_by_another_user(folder: Path) -> None:
    for path in sockets(folder):
        assert as_ourselves(path) > 0
        assert as_stranger(path) == "PermissionError", path.name
