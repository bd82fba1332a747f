"""Transfer frames that the peer's session window does not take yet, in order (part 2, section 2.5.6)."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from hubweir.amqp.transport.session_window import SessionWindow

Owner = TypeVar("Owner")


class HeldFrames(Generic[Owner]):
    """A queue of whole frames, each of the link that owns it.

    The credit of each link bounds it; a host that looks at sendable adds one delivery.
    """

    __slots__ = ("_frames", "_window")

    def __init__(self, window: SessionWindow) -> None:
        self._frames: deque[tuple[Owner, bytearray]] = deque()
        self._window = window

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, link: Owner, frame: bytearray) -> None:
        """Queue a frame behind the others."""
        self._frames.append((link, frame))

    def add_all(self, link: Owner, frames: bytearray, count: int) -> None:
        """Queue count frames that stand back to back."""
        start = 0
        for _ in range(count):
            end = start + int.from_bytes(frames[start : start + 4], "big")
            self._frames.append((link, frames[start:end]))
            start = end

    def send(self, out: bytearray) -> None:
        """Write to out what the window takes."""
        while self._frames and self._window.remote_window > 0:
            out += self._frames.popleft()[1]
            self._window.sent(1)

    def drop(self, link: Owner) -> None:
        """Forget the frames of a link that is over."""
        if self._frames:
            self._frames = deque(entry for entry in self._frames if entry[0] is not link)

    def clear(self) -> None:
        """Forget all: the session is over."""
        self._frames.clear()
