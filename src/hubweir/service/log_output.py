"""The log of a service, as it is printed: one line a record, as text for people or as JSON for programs.

Lines of the table (service_log.py) bear the name of their kind, all others that of their module; what is no line of
ours is printed from a warning on. Of one kind the log takes so many lines a minute (line_limit.py); of lines without a
kind, those that one statement of the program says are one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

from hubweir.service.line_limit import WINDOW_S, LineLimit
from hubweir.service_log import MANY, Line, plain

# A line that is no kind's is one of few that nobody floods with; a start with a thousand broken logs has as many.
OTHER_LINES = MANY
TICK_S = 5.0

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

_Key = tuple[str, str, int]  # kind or module, what is counted with it, level


class TextFormat(logging.Formatter):
    """`2026-03-01 09:12:44,123 INFO ready: clients are taken on …`. process: of several."""

    def __init__(self, process: int | None) -> None:
        where = "" if process is None else f"process {process} "
        super().__init__(f"%(asctime)s %(levelname)s {where}%(kind)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.kind = _kind_of(record)
        return super().format(record)


class JsonFormat(logging.Formatter):
    """An object a line: time, level, kind, text, and the fields of the kind. Times are UTC."""

    def __init__(self, process: int | None) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        document: dict[str, object] = {"time": at, "level": record.levelname.lower(), "kind": _kind_of(record)}
        if self._process is not None:
            document["process"] = self._process
        document["message"] = record.getMessage()
        if isinstance(record.msg, Line):
            document["fields"] = record.msg.fields
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return json.dumps(document, ensure_ascii=False)


class LogOutput(logging.StreamHandler[TextIO]):
    """See the module's text. clock: seconds that never run back."""

    def __init__(
        self,
        log_format: str,
        *,
        process: int | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(sys.stderr if stream is None else stream)
        self.setFormatter(JsonFormat(process) if log_format == "json" else TextFormat(process))
        self._clock = clock
        self._limit: LineLimit[_Key] = LineLimit()

    def emit(self, record: logging.LogRecord) -> None:
        now_s = self._clock()
        self._tell(now_s)
        line = record.msg
        if isinstance(line, Line):
            limit, key = line.kind.per_minute, (line.kind.name, line.sort, record.levelno)
        else:
            limit, key = OTHER_LINES, (record.name, _statement(record), record.levelno)
            record = _plain_record(record)
        if limit == 0 or self._limit.takes(key, limit, now_s):
            super().emit(record)

    def tick(self) -> None:
        """Tell of kinds whose minute is over; whoever prints nothing for long is told in time so."""
        self.acquire()
        try:
            self._tell(self._clock())
        finally:
            self.release()

    def follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the loop call `tick` from now on."""

        def again() -> None:
            self.tick()
            loop.call_later(TICK_S, again)

        loop.call_later(TICK_S, again)

    def handleError(self, record: logging.LogRecord) -> None:
        """The reader of the log is gone, or the disk that it lies on is full: the service serves on."""

    def close(self) -> None:
        """Tell what was left out until now. The last lines of a process."""
        self._tell(self._clock(), is_all=True)
        super().close()

    def _tell(self, now_s: float, *, is_all: bool = False) -> None:
        for (name, sort, level), count in self._limit.ended(now_s, is_all=is_all):
            of = f" ({sort})" if sort else ""
            text = f"{count} more lines like this in {WINDOW_S:.0f} s, not shown{of}"
            super().emit(logging.LogRecord(name, level, __file__, 0, text, None, None))


def begin_log(level: str, log_format: str, *, process: int | None = None) -> LogOutput:
    """Print the log of this process from now on. level: one of LEVELS; of libraries only warnings are printed."""
    output = LogOutput(log_format, process=process)
    logging.getLogger().handlers[:] = [output]
    set_level(level)
    return output


def set_level(level: str) -> None:
    """Print lines from this level on. level: one of LEVELS."""
    logging.getLogger().setLevel(max(LEVELS[level], logging.WARNING))
    logging.getLogger("hubweir").setLevel(LEVELS[level])


def _statement(record: logging.LogRecord) -> str:
    """Which statement says a line, for people: its wording, or its place where a library puts the whole text together,
    as asyncio does: there is no end of such texts.
    """
    return str(record.msg) if record.args else f"{record.filename}:{record.lineno}"


def _plain_record(record: logging.LogRecord) -> logging.LogRecord:
    """One line, whatever is in its text. A copy: others may print it, too."""
    copied = logging.makeLogRecord(record.__dict__)
    copied.msg, copied.args = plain(record.getMessage()), None
    return copied


def _kind_of(record: logging.LogRecord) -> str:
    return record.msg.kind.name if isinstance(record.msg, Line) else record.name
