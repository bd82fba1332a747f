"""The official JavaScript client of queues at a service whose answers a way in front of it alters: what it raises."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.altered_answers import Alter, AlteredAnswers
from tests.conformance.foreign.checks import LIMIT_S
from tests.conformance.foreign.test_javascript_queues import PROGRAM
from tests.conformance.foreign.toolchain import NotRun, prepare
from tests.conformance.spoken_conditions import CONDITIONS, Rejecting, dead_letter_with_an_error

RUN_S = 120
PAGES = ("conditions.mjs", "dead_letter.mjs")
ALTERED = replace(PROGRAM, sources=(*PROGRAM.sources, *PAGES))
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.client("@azure/service-bus, JavaScript"),
    pytest.mark.feature("errors"),
    pytest.mark.timeout(LIMIT_S),
]


@pytest.fixture
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as namespace:
        namespace.create_queue("orders")
        yield namespace


def said_by(page: str, namespace: RunningNamespace, alter: Alter, **environment: str) -> dict[str, tuple[bool, str]]:
    """What a page of the program says of each of its checks, when it meets the service by an altered way."""
    try:
        prepare(ALTERED, lambda line: None)
    except NotRun as error:
        pytest.skip(f"NOT RUN: {error}")
    with AlteredAnswers((namespace.host, namespace.port), alter) as way:
        text = namespace.connection_string().replace(f":{namespace.port}", f":{way.port}")
        known = dict.fromkeys(("HUBWEIR_PLAIN", "HUBWEIR_TLS", "HUBWEIR_WRONG_KEY"), text)
        done = subprocess.run(
            ("node", page),
            cwd=ALTERED.folder,
            env=ALTERED.environ({**known, **environment}),
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
    assert done.returncode == 0, done.stderr
    return {each["check"]: (each["ok"], each["detail"]) for each in map(json.loads, done.stdout.splitlines())}


@pytest.mark.sb(156)
def test_each_condition_of_a_rejected_send_becomes_its_code(namespace: RunningNamespace) -> None:
    expected = {each.condition: (True, each.code) for each in CONDITIONS if each.code}
    rejecting = Rejecting("orders", list(expected))
    said = said_by("conditions.mjs", namespace, rejecting, HUBWEIR_CONDITIONS=json.dumps(list(expected)))
    assert said == expected


@pytest.mark.sb(54)
def test_an_error_in_the_answer_to_a_dead_letter_makes_the_client_raise(namespace: RunningNamespace) -> None:
    said = said_by("dead_letter.mjs", namespace, dead_letter_with_an_error)
    assert [ok for ok, _ in said.values()] == [True], said
