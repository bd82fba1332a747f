from __future__ import annotations

import pytest

from hubweir.errors import NOT_FOUND, STORE_OFFLINE, ServiceError
from hubweir.spark import patience
from hubweir.spark.patience import Patience

AWAY = ServiceError(STORE_OFFLINE, "nobody is there")


class Clock:
    """Of the module under test; waits are counted, and take no time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.waits: list[float] = []
        monkeypatch.setattr(patience, "time", self)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def test_only_what_may_pass_is_waited_for_and_only_so_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, away = Clock(monkeypatch), Patience("event hub 'orders'", 30.0)
    assert not away.may_go_on(ServiceError(NOT_FOUND, "no such hub"), 100.0)
    away.succeeded()
    assert away.back_s == 0.0, "there was no trouble"
    assert away.may_go_on(AWAY, 99.0)
    clock.now_s = 128.9
    assert away.may_go_on(AWAY, 128.0)
    clock.now_s = 129.1
    assert not away.may_go_on(AWAY, 129.0)
    assert len(caplog.records) == 1 and "'orders' has not served for 1 s" in caplog.text
    assert "until it was away for 30 s, the operationTimeout: nobody is there" in caplog.text
    away.succeeded()
    assert away.back_s == 129.1
    assert away.may_go_on(AWAY, 129.0) and len(caplog.records) == 2


def test_a_long_absence_is_told_of_every_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, away = Clock(monkeypatch), Patience("it", 3_600.0)
    for _ in range(13):
        away.rest(AWAY)
        clock.now_s += 10.0
    assert [record.getMessage().split(". ")[0] for record in caplog.records] == [
        f"it has not served for {seconds} s" for seconds in (0, 60, 120)
    ]


def test_a_step_is_tried_until_it_succeeds_with_waits_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answers = Clock(monkeypatch), [AWAY] * 12

    def step() -> str:
        if answers:
            raise answers.pop()
        return "done"

    assert Patience("it", 60.0).tried(step) == "done"
    assert len(clock.waits) == 12 and clock.waits[0] <= 0.05 and max(clock.waits) <= 0.5


def test_an_error_that_no_try_can_help_comes_as_it_is() -> None:
    refusal = ServiceError(NOT_FOUND, "no such hub")

    def step() -> None:
        raise refusal

    with pytest.raises(ServiceError) as raised:
        Patience("it", 60.0).tried(step)
    assert raised.value is refusal
