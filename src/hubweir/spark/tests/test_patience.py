import logging

import pytest

from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import ARGUMENT_ERROR, CONNECTION_FORCED, SERVER_BUSY, UNAUTHORIZED, ServiceError
from hubweir.spark import patience
from hubweir.spark.patience import Patience


def test_what_no_try_can_help_is_raised_at_once() -> None:
    for rows, text in (("rows 1 to 7 of task 3", "it takes no rows 1 to 7 of task 3: no good"), ("", "it takes no wr")):
        with pytest.raises(ServiceError, match=text) as refused:
            Patience("it", 60.0).rest(ServiceError(ARGUMENT_ERROR, "no good"), rows)
        assert refused.value.condition is ARGUMENT_ERROR


def test_who_may_not_send_is_told_what_to_give() -> None:
    with pytest.raises(ServiceError, match="connectionString has to give the right Send there: Unauthorized access"):
        Patience("it", 60.0).rest(ServiceError(UNAUTHORIZED, "Unauthorized access"))


def test_a_service_that_is_away_is_tried_until_the_limit() -> None:
    away = ServiceError(CONNECTION_FORCED, "away")
    patient = Patience("it", 0.0)
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

    assert Patience("it", 60.0).tried(step) == "done"


def test_a_busy_service_is_waited_for_and_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(patience, "_TOLD_EVERY_S", 0.0)
    patient, busy = Patience("partition 3", 0.0), ServiceError(SERVER_BUSY, "too much")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            patient.rest(busy)
    assert len(caplog.messages) == 3 and "partition 3 takes nothing" in caplog.text and "too much" in caplog.text
