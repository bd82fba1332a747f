"""Computes how fast capture goes beside publishers: it gives way to them when it cannot keep up with them anyhow.

Capture and publishers share the processor and the disk. What all captures of a broker together take of them:

| situation                               | share                                                                |
|-----------------------------------------|----------------------------------------------------------------------|
| capture keeps up with what comes in     | all that it needs                                                    |
| more comes in than capture can take     | SHARE_PERCENT of a thread, or one byte for each PART bytes that come |
|                                         | in if that is more; a rest follows each piece of work                |
| less comes in again                     | all that it needs, until what was left over is captured              |
| one capture's lag comes near to what    | all that this one needs: before events are lost to capture, capture  |
| retention waits for                     | comes first                                                          |

In the second row full speed would slow publishers down, and files would be late all the same.

Pure arithmetic: times and counts are passed in. Sizes are bytes of the log.
"""

from __future__ import annotations

# Of one thread's time: capture costs about as much an event as storing it does, so publishers keep most of a machine.
SHARE_PERCENT = 40
# On a slow or busy machine a thread's time says little: there capture keeps to its part of what is stored.
PART = 2
# How long counts are gathered before what comes in is held against what is captured.
LOOK_MS = 250
# A disk that hung for a while is no reason to stay away for long.
REST_LIMIT_MS = 1_000


def is_near(behind_bytes: int, quota_bytes: int) -> bool:
    """Whether a partition is so far behind that its capture rests no more."""
    return 2 * behind_bytes > quota_bytes


class CapturePace:
    """That of all captures of one broker. Used on the loop. at_work: files that are being made now."""

    def __init__(self) -> None:
        self.gives_way = True  # until it is known what comes in: a moment later
        self.at_work = 0
        self._rate = 0  # bytes that came in, a second
        self._left_ms = self._left_appended = self._entered_ms = 0  # when nobody was at work any more; somebody again
        self._has_pieces = False  # since then
        self._empty_ms = 0  # of work on files without events, since the last piece of another
        self._start(0, 0)

    def enter(self, now_ms: int, appended_bytes: int) -> None:
        """A file is begun. now_ms: monotonic. appended_bytes: to all logs, since the process began."""
        if not self.at_work:
            # What came while nobody captured says nothing. What was gathered before stays: files that are shorter than
            # a look, one after the other, would else never come to one.
            self._since_ms += now_ms - self._left_ms
            self._appended += appended_bytes - self._left_appended
            self._entered_ms = now_ms
        self.at_work += 1

    def leave(self, now_ms: int, appended_bytes: int) -> None:
        """It is finished, or given up."""
        self.at_work -= 1
        self._left_ms, self._left_appended = now_ms, appended_bytes
        if self.at_work or self._has_pieces:
            self._has_pieces &= bool(self.at_work)
            return
        self._empty_ms += now_ms - self._entered_ms
        if self._empty_ms >= LOOK_MS:
            # There is nothing to capture, so it keeps up. No piece will ever say so.
            self.gives_way = False
            self._start(now_ms, appended_bytes)

    def worked(self, size: int, work_ms: int, now_ms: int, appended_bytes: int) -> int:
        """A piece of so many bytes took so long: how many milliseconds whoever did it rests now."""
        self._has_pieces, self._empty_ms = True, 0
        self._captured += size
        self._worked_ms += work_ms
        passed_ms = now_ms - self._since_ms
        if passed_ms >= LOOK_MS:
            came = appended_bytes - self._appended
            # Resting, one thread has shown what it could do if it did not.
            could = self._captured * passed_ms // max(1, self._worked_ms) if self.gives_way else self._captured
            self.gives_way, self._rate = came > could, came * 1000 // passed_ms
            self._start(now_ms, appended_bytes)
        if not self.gives_way:
            return 0
        # The others work and rest as well: the more there are, the longer each of them rests.
        by_time = work_ms * self.at_work * 100 // SHARE_PERCENT
        by_bytes = size * self.at_work * PART * 1000 // max(1, self._rate)
        return max(0, min(REST_LIMIT_MS, min(by_time, by_bytes) - work_ms))

    def _start(self, now_ms: int, appended_bytes: int) -> None:
        self._since_ms, self._appended = now_ms, appended_bytes
        self._captured = self._worked_ms = 0
