import logging

import pytest

from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import ARGUMENT_ERROR, CONNECTION_FORCED, SERVER_BUSY, UNAUTHORIZED, ServiceError
from hubweir.spark import patience
from hubweir.spark.sink import write_patience
from hubweir.spark.sink.write_patience import WritePatience


def test_what_no_try_can_help_is_raised_at_once() -> None:
    for rows, text in (
        ({"rows": "rows 1 to 7 of task 3"}, "it takes no rows 1 to 7 of task 3: no good"),
        ({}, "it takes no writes of this task: no good"),
    ):
        with pytest.raises(ServiceError, match=text) as refused:
            WritePatience("it", 60.0).rest(ServiceError(ARGUMENT_ERROR, "no good"), **rows)
        assert refused.value.condition is ARGUMENT_ERROR


def test_who_may_not_send_is_told_what_to_give() -> None:
    with pytest.raises(ServiceError, match="connectionString has to give the right Send there: Unauthorized access"):
        WritePatience("it", 60.0).rest(ServiceError(UNAUTHORIZED, "Unauthorized access"))


def test_a_service_that_is_away_is_tried_until_the_limit() -> None:
    away = ServiceError(CONNECTION_FORCED, "away")
    patient = WritePatience("it", 0.0)
    patient.rest(away)
    with pytest.raises(ServiceError, match="it took nothing for 0 s, the operationTimeout: away"):
        patient.rest(away)
    patient.succeeded()
    patient.rest(OutcomeUnknown(ServiceError(ARGUMENT_ERROR, "the link ended")))


def test_a_step_is_tried_until_it_succeeds() -> None:
    answers = [ServiceError(CONNECTION_FORCED, "away"), ServiceError(CONNECTION_FORCED, "still away")]

    def step() -> str:
        if answers:
            raise answers.pop()
        return "done"

    assert WritePatience("it", 60.0).tried(step) == "done"


class Clock:
    """Of the module under test: waits take no time, others are said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        monkeypatch.setattr(patience, "time", self)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        pass


def test_time_in_which_the_service_said_that_it_is_busy_is_not_time_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patient = Clock(monkeypatch), WritePatience("it", 60.0)
    busy, away = ServiceError(SERVER_BUSY, "too much"), ServiceError(CONNECTION_FORCED, "away")
    for _ in range(10):
        patient.rest(busy)
        clock.now_s += 50.0
        patient.rest(away)
    clock.now_s += 11.0
    with pytest.raises(ServiceError, match="it took nothing for 61 s"):
        patient.rest(away)


def test_trouble_long_after_a_step_that_was_tried_again_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patient = Clock(monkeypatch), WritePatience("it", 60.0)
    away = [ServiceError(CONNECTION_FORCED, "away")]

    def step() -> None:
        if away:
            raise away.pop()

    patient.tried(step)
    clock.now_s += 3_600.0
    patient.rest(ServiceError(CONNECTION_FORCED, "away again"))


def test_a_busy_service_is_waited_for_and_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(patience, "_TOLD_EVERY_S", 0.0)
    monkeypatch.setattr(write_patience, "_SILENT_S", 0.0)
    patient, busy = WritePatience("partition 3", 0.0), ServiceError(SERVER_BUSY, "too much")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            patient.rest(busy)
    assert (
        len(caplog.messages) == 3 and "partition 3 has not served for 0 s" in caplog.text and "too much" in caplog.text
    )
