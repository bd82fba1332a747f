"""retention.py: what an owner drops, by age, and what it keeps for somebody who has to read it yet."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, cast

import pytest

from hubweir.messaging_store.log import Log
from hubweir.messaging_store.retention import expire


class Aged:
    """A log of which only ages are asked: the record of each index has its time."""

    def __init__(self, *times_ms: int) -> None:
        self._times_ms = times_ms
        self.trimmed: list[int] = []

    def older_than(self, time_ms: int) -> int:
        return bisect_left(self._times_ms, time_ms)

    def trim(self, index: int) -> int:
        self.trimmed.append(index)
        return index


def expired(*times_ms: int, **given: Any) -> int:
    log = Aged(*times_ms)
    first = expire(cast(Log, log), **given)
    assert log.trimmed == [first]
    return first


TIMES_MS = (100, 200, 300, 400)


def test_what_is_older_than_retention_goes() -> None:
    assert [expired(*TIMES_MS, now_ms=now, retention_ms=50) for now in (150, 151, 350, 351, 900)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("keep_from", "first"), [(0, 0), (1, 1), (3, 3), (4, 3), (99, 3)])
def test_what_somebody_must_read_yet_stays(keep_from: int, first: int) -> None:
    assert expired(*TIMES_MS, now_ms=400, retention_ms=50, keep_from=keep_from, kept_longer_ms=1_000) == first


def test_it_stays_no_longer_than_that() -> None:
    given = {"retention_ms": 50, "keep_from": 1, "kept_longer_ms": 100}
    assert [expired(*TIMES_MS, now_ms=now, **given) for now in (350, 351, 450, 451, 900)] == [1, 2, 2, 3, 4]


def test_what_was_read_goes_though_others_stay() -> None:
    assert expired(*TIMES_MS, now_ms=900, retention_ms=50, keep_from=2, kept_longer_ms=10_000) == 2
