"""A disk under a service of this process that does not answer for a while, or fails, until a test lets it go on."""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from typing import Any

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.transport.performatives import Detach
from hubweir.env import SyncFailed
from hubweir.messaging_store.disk import files
from hubweir.testing.frames import frame
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.raw_client import RawClient

WAIT_S = 30.0
BUSY = "com.microsoft:server-busy"
PAYLOAD = encode_message(Message(body=DataBody((b"x",))))


class Disk:
    """Writes wait while `answers` is cleared, and fail while `is_broken` is set."""

    def __init__(self, below: str = "") -> None:
        """below: only files whose path has this folder in it."""
        self.below = below
        self.answers, self.is_broken = threading.Event(), threading.Event()
        self.heal()

    def heal(self) -> None:
        self.is_broken.clear()
        self.answers.set()

    def call(self, plain: Callable[..., Any], *args: Any) -> Any:
        """What every write does."""
        assert self.answers.wait(WAIT_S)
        if self.is_broken.is_set():
            raise SyncFailed(errno.EIO, "broken disk")
        return plain(*args)


@contextmanager
def troubled(patch: pytest.MonkeyPatch, *, below: str = "") -> Iterator[Disk]:
    """The disk of this process, sound at the beginning and again at the end. below: only what lies in this folder."""
    disk = Disk(f"/{below}/" if below else "")
    for name in ("write", "write_and_sync", "sync"):
        patch.setattr(files.SystemFile, name, partialmethod(_through, disk, getattr(files.SystemFile, name)))
    try:
        yield disk
    finally:
        disk.heal()


def _through(file: files.SystemFile, disk: Disk, plain: Callable[..., Any], *args: Any) -> Any:
    return disk.call(plain, file, *args) if disk.below in file.path else plain(file, *args)


def break_at_a_send(client: RawClient, disk: Disk) -> None:
    """From now on the queue's log takes nothing. The send that found it out has no known outcome, so its link ends."""
    disk.is_broken.set()
    client.transfer(client.sender("orders"), PAYLOAD)
    detach = client.expect(Detach)
    assert detach.error is not None and detach.error.condition == "amqp:link:detach-forced"
    client.write(frame(Detach(handle=detach.handle, closed=True)))


@contextmanager
def busy_until_told(namespace: RunningNamespace, disk: Disk, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The queue `orders` is offline, and heals when a sender was told to wait; at the end one was."""

    def heal_when_it_was_told() -> None:
        end = time.monotonic() + WAIT_S
        while not any(BUSY in line for line in caplog.messages) and time.monotonic() < end:
            time.sleep(0.05)
        disk.heal()

    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    with RawClient.connect((namespace.host, namespace.port)) as client:
        break_at_a_send(client.trusted(), disk)
    healing = threading.Thread(target=heal_when_it_was_told)
    healing.start()
    try:
        yield
    finally:
        healing.join(2 * WAIT_S)
    assert any(f"send refused: {BUSY}" in line for line in caplog.messages)
