"""Is the service alive, is it ready: the emulators' document, without a token."""

import json

import pytest

from hubweir.alarms import DAMAGE, LOG_OFFLINE, Alarms
from hubweir.counters import Counters
from hubweir.gateway.http.health import Health
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.gateway.http.tests.service import Http
from hubweir.testing.simulated_env import SimulatedEnv

GOOD = {"status": "healthy", "message": "Service is healthy."}
BAD = {"status": "unhealthy", "message": "Service not available. Please try after some time."}


@pytest.fixture
def alarms() -> Alarms:
    return Alarms(SimulatedEnv(), Counters())


@pytest.mark.parametrize("page", ["health", "livez", "ready", "readyz"])
def test_a_running_service_answers_with_the_emulators_document(page: str, alarms: Alarms) -> None:
    answer = Health(lambda: True, alarms).answer("GET", (page,))
    assert answer is not None and answer.status == 200
    assert json.loads(answer.body) == (GOOD if page in ("health", "livez") else GOOD | {"alarms": {}})
    assert answer.content_type == "application/json"


@pytest.mark.parametrize("page", ["health", "ready"])
def test_a_service_that_starts_or_stops_answers_503(page: str, alarms: Alarms) -> None:
    answer = Health(lambda: False, alarms).answer("GET", (page,))
    assert answer is not None and answer.status == 503
    assert json.loads(answer.body) == (BAD if page == "health" else BAD | {"alarms": {}})


def test_what_blocks_requests_makes_a_live_service_unready_until_it_is_over(alarms: Alarms) -> None:
    health = Health(lambda: True, alarms)

    def asked(page: str) -> tuple[int, object]:
        answer = health.answer("GET", (page,))
        assert answer is not None
        return answer.status, json.loads(answer.body)

    alarms.begin(DAMAGE, "partition 3 of secret", "bad")
    assert asked("ready") == (200, GOOD | {"alarms": {"damage": 1}})
    alarms.begin(LOG_OFFLINE, "partition 3 of secret", "bad")
    alarms.begin(LOG_OFFLINE, "partition 4 of secret", "bad")
    assert asked("ready") == asked("readyz") == (503, BAD | {"alarms": {"log-offline": 2, "damage": 1}})
    assert asked("health") == asked("livez") == (200, GOOD)
    alarms.end(LOG_OFFLINE, "partition 3 of secret")
    assert asked("ready")[0] == 503
    alarms.end(LOG_OFFLINE, "partition 4 of secret")
    assert asked("ready") == (200, GOOD | {"alarms": {"damage": 1}})


def test_other_pages_are_not_health_pages(alarms: Alarms) -> None:
    health = Health(lambda: True, alarms)
    assert health.answer("GET", ("health", "more")) is None
    assert health.answer("GET", ("Hub",)) is None
    assert health.answer("GET", ()) is None


def test_other_methods_are_refused_with_what_is_allowed(alarms: Alarms) -> None:
    with pytest.raises(HttpRefusal) as refusal:
        Health(lambda: True, alarms).answer("POST", ("health",))
    assert (refusal.value.status, refusal.value.headers) == (405, {"allow": "GET, HEAD"})


def test_a_live_service_is_healthy_without_a_token_and_head_has_no_body(http: Http) -> None:
    read, looked = http.call("GET", "/health", auth=None), http.call("HEAD", "/health", auth=None)
    assert (read.status, looked.status, looked.body) == (200, 200, b"")
    assert read.headers["content-length"] == looked.headers["content-length"] == str(len(read.body))
    assert http.call("POST", "/health", auth=None).headers["allow"] == "GET, HEAD"
