"""Is the service alive, is it ready: the emulators' document, without a token."""

import json

import pytest

from hubweir.gateway.http.health import Health
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.gateway.http.tests.service import Http


@pytest.mark.parametrize("page", ["health", "livez", "ready", "readyz"])
def test_a_ready_service_answers_with_the_emulators_document(page: str) -> None:
    answer = Health(lambda: True).answer("GET", (page,))
    assert answer is not None and answer.status == 200
    assert json.loads(answer.body) == {"status": "healthy", "message": "Service is healthy."}
    assert answer.content_type == "application/json"


@pytest.mark.parametrize("page", ["health", "ready"])
def test_a_service_that_is_not_ready_answers_503(page: str) -> None:
    answer = Health(lambda: False).answer("GET", (page,))
    assert answer is not None and answer.status == 503
    assert json.loads(answer.body) == {
        "status": "unhealthy",
        "message": "Service not available. Please try after some time.",
    }


def test_a_service_that_stops_is_alive_and_not_ready() -> None:
    health = Health(lambda: False, lambda: True)
    assert [answer and answer.status for answer in (health.answer("GET", (p,)) for p in ("health", "ready"))] == [
        200,
        503,
    ]


def test_other_pages_are_not_health_pages() -> None:
    health = Health(lambda: True)
    assert health.answer("GET", ("health", "more")) is None
    assert health.answer("GET", ("Hub",)) is None
    assert health.answer("GET", ()) is None


def test_other_methods_are_refused_with_what_is_allowed() -> None:
    with pytest.raises(HttpRefusal) as refusal:
        Health(lambda: True).answer("POST", ("health",))
    assert (refusal.value.status, refusal.value.headers) == (405, {"allow": "GET, HEAD"})


def test_a_live_service_is_healthy_without_a_token_and_head_has_no_body(http: Http) -> None:
    read, looked = http.call("GET", "/health", auth=None), http.call("HEAD", "/health", auth=None)
    assert (read.status, looked.status, looked.body) == (200, 200, b"")
    assert read.headers["content-length"] == looked.headers["content-length"] == str(len(read.body))
    assert http.call("POST", "/health", auth=None).headers["allow"] == "GET, HEAD"
