"""What a machine adds to every time that a test measures: the slowest of many ordinary operations, done beside it.

A bound that holds on a slow machine too is the contract's figure and one such operation for each that the test does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

JOIN_S = 60.0
PAUSE_S = 0.02  # between two operations: they are to notice a busy machine, not to make one


class OrdinaryPace:
    """Does an operation again and again in a thread. A context manager; behind its end `slowest_s` is known."""

    def __init__(self, operation: Callable[[], object]) -> None:
        """operation: one that waits for nothing but the service's answer. What it raises, the end of this raises."""
        self._operation = operation
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.slowest_s = 0.0

    def __enter__(self) -> OrdinaryPace:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join(JOIN_S)  # the operation that is under way counts, too
        if error is None and self._error is not None:
            raise self._error
        assert error is not None or not self._thread.is_alive(), "the operation does not end"

    def _work(self) -> None:
        try:
            while True:
                begin = time.monotonic()
                self._operation()
                self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
                if self._is_over.wait(PAUSE_S):
                    return
        except BaseException as error:
            self._error = error
