"""One key's life, with a handle that keeps its timers in a list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")
from pyspark.sql import Row

from hubweir.pipelines.per_key_state import LastSeen


class Handle:
    """State and timers of one key."""

    def __init__(self) -> None:
        self.timers: list[int] = []
        self.value: tuple[Any, ...] | None = None

    def getValueState(self, name: str, schema: str) -> Handle:
        return self

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def listTimers(self) -> list[int]:
        return self.timers

    def deleteTimer(self, timer: int) -> None:
        self.timers.remove(timer)

    def registerTimer(self, timer: int) -> None:
        self.timers.append(timer)


def at(now: int) -> Any:
    return SimpleNamespace(getCurrentProcessingTimeInMs=lambda: now, getExpiryTimeInMs=lambda: now)


def test_a_key_is_seen_falls_silent_and_is_back() -> None:
    handle, life = Handle(), LastSeen(1_000)
    life.init(handle)  # type: ignore[arg-type]
    assert list(life.handleInputRows(("m",), iter([Row(time=70), Row(time=60)]), at(5_000))) == []
    assert handle.value == (2, 70, False) and handle.timers == [6_000]
    assert list(life.handleInputRows(("m",), iter([Row(time=80)]), at(5_500))) == []
    assert handle.timers == [6_500], "an event puts the alarm off"
    handle.timers.clear()
    (alert,) = life.handleExpiredTimer(("m",), at(6_500), at(6_500))
    assert alert == Row(key="m", state="silent", events=3, lastSeen=80, at=6_500)
    (back,) = life.handleInputRows(("m",), iter([Row(time=90)]), at(9_000))
    assert back == Row(key="m", state="back", events=4, lastSeen=90, at=9_000)
    assert list(life.handleInputRows(("m",), iter([Row(time=91)]), at(9_100))) == []
