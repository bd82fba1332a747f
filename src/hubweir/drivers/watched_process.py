"""A process that is spawned, or was found, and watched until it ends: by a descriptor that names it and no later one.

It is made by exec, never by a fork that goes on with our state: a forked child would keep our locks (rule R14). It gets
a session of its own, so that a terminal's signals do not reach it. Linux alone has such descriptors.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)


class WatchedProcess:
    """See the module's text. Made on a running loop, by `spawn` or `found`."""

    def __init__(self, pid: int, child: subprocess.Popen[bytes] | None) -> None:
        self.pid = pid
        self.is_child = child is not None
        self._child = child
        self._ended = asyncio.Event()
        self._calls: list[Callable[[], object]] = []
        self._loop = asyncio.get_running_loop()
        self._descriptor = os.pidfd_open(pid)
        self._loop.add_reader(self._descriptor, self._on_ended)

    @classmethod
    def spawn(cls, command: Sequence[str], document: bytes) -> WatchedProcess:
        """Start a program and give it the document on its standard input. OSError when there is no such program.

        Its standard error is ours. Blocks until it has taken the document, as far as a pipe does not hold it.
        """
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, close_fds=True
        )
        watched = cls(child.pid, child)
        try:
            with child.stdin as stream:  # type: ignore[union-attr]  # it is a pipe, as asked for
                stream.write(document)
        except BrokenPipeError:
            logger.info("process %d ended before it had read what it was started with", child.pid)
        return watched

    @classmethod
    def found(cls, pid: int) -> WatchedProcess | None:
        """A process that somebody else started; None when it has ended meanwhile."""
        try:
            return cls(pid, None)
        except ProcessLookupError:
            return None

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, and everything that it held is free."""
        return self._ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """As of subprocess: negative for a signal. None while it runs, and of what we did not start."""
        return None if self._child is None or not self.has_ended else self._child.returncode

    @property
    def how_it_ended(self) -> str:
        """The exit code in words, for the log."""
        code = self.exit_code
        if code is None:
            return "it was not ours, so that its exit code is not known"
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def when_ended(self, call: Callable[[], object]) -> None:
        """Have it called once, on the loop, when it is gone; at once when it is."""
        if self.has_ended:
            call()
        else:
            self._calls.append(call)

    async def ended(self) -> None:
        """Wait until it is gone."""
        await self._ended.wait()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; does nothing when it is gone."""
        if not self.has_ended:
            try:
                signal.pidfd_send_signal(self._descriptor, number)
            except ProcessLookupError:
                logger.debug("process %d is gone", self.pid)

    async def kill(self) -> None:
        """End it at once, and wait until it is gone: whatever it owned may be taken then."""
        self.send(signal.SIGKILL)
        await self.ended()

    def forget(self) -> None:
        """Watch it no more; it lives on."""
        if not self.has_ended:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _on_ended(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        if self._child is not None:
            self._child.wait()  # at once: it is a zombie by now
        self._ended.set()
        calls, self._calls = self._calls, []
        for call in calls:
            call()
