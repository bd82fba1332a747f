"""Counts the bytes of peers that are taken and not answered, and pauses who is over. (docs/reliability.md, rule R17)

Credit is advice: some clients send without any. What bounds memory is this: every delivery's bytes are taken from the
budget when they arrive and given back when it is answered. A connection over its own budget, or any connection that
takes while the process is over, is read no more until half of that budget is free again. Nothing is refused.
"""

from __future__ import annotations

from typing import Protocol


class SocketReader(Protocol):
    """Somebody whose socket can be left unread for a while."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Waiter(Protocol):
    """Somebody who takes no more until the process has room: a connection, or a request that was not read yet."""

    def process_has_room(self) -> None:
        """Half of the process's budget is free. Whoever was told before may have filled it again."""


class ProcessBudget:
    """The bytes of all connections of one process."""

    __slots__ = ("_limit", "_waiting", "used")

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._waiting: dict[int, Waiter] = {}  # by id, in the order in which they were paused
        self.used = 0

    @property
    def is_full(self) -> bool:
        return self.used >= self._limit

    def take_bytes(self, size_bytes: int) -> bool:
        """Bytes arrived, or are about to; True when that is more than there is room for."""
        self.used += size_bytes
        return self.used >= self._limit

    def wait(self, waiter: Waiter) -> None:
        """Tell this one when half of the process's budget is free."""
        self._waiting[id(waiter)] = waiter

    def forget(self, waiter: Waiter) -> None:
        """It waits no more."""
        self._waiting.pop(id(waiter), None)

    def give_back_bytes(self, size_bytes: int) -> None:
        self.used -= size_bytes
        if self._waiting and self.used <= self._limit // 2:
            waiting = list(self._waiting.values())
            self._waiting.clear()
            for waiter in waiting:
                waiter.process_has_room()


class ConnectionBudget:
    """The bytes of one connection; pauses and resumes its reader."""

    __slots__ = ("_limit", "_paused", "_process", "_reader", "_waits_for_process", "used")

    def __init__(self, limit_bytes: int, process: ProcessBudget, reader: SocketReader) -> None:
        self._limit = limit_bytes
        self._process = process
        self._reader = reader
        self._paused = False
        self._waits_for_process = False
        self.used = 0

    def take_bytes(self, size_bytes: int) -> None:
        """Bytes arrived. They are here already, so they are counted even when this goes over."""
        self.used += size_bytes
        is_full = self._process.take_bytes(size_bytes)
        if not self._paused and (is_full or self.used >= self._limit):
            self._paused = True
            self._reader.pause_reading()
            self._wait_for_process()

    def give_back_bytes(self, size_bytes: int) -> None:
        """Bytes were answered, or will never be."""
        self.used -= size_bytes
        self._process.give_back_bytes(size_bytes)
        if self._paused:
            self._resume()

    def process_has_room(self) -> None:
        """Half of the process's budget is free."""
        self._waits_for_process = False
        self._resume()

    def close(self) -> None:
        """The connection is over: whatever is still unanswered is given back by whoever took it, and nobody waits."""
        self._process.forget(self)
        self._paused = False

    def _resume(self) -> None:
        """Read on when nothing stands against it any more."""
        if not self._paused or self._waits_for_process or self.used > self._limit // 2:
            return
        self._wait_for_process()
        if not self._waits_for_process:
            self._paused = False
            self._reader.resume_reading()

    def _wait_for_process(self) -> None:
        if self._process.is_full:
            self._waits_for_process = True
            self._process.wait(self)
