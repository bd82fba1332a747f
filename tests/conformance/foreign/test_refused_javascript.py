"""The official JavaScript client of queues at a service whose answers a way in front of it alters: what it raises."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.altered_answers import Alter, AlteredAnswers
from tests.conformance.altered_pages import AlteredPages
from tests.conformance.foreign.checks import LIMIT_S
from tests.conformance.foreign.test_javascript_queues import PROGRAM
from tests.conformance.foreign.toolchain import NotRun, prepare
from tests.conformance.spoken_conditions import CONDITIONS, Rejecting, dead_letter_with_an_error

RUN_S = 120
PAGES = ("conditions.mjs", "dead_letter.mjs", "counts.mjs")
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
    with AlteredAnswers((namespace.host, namespace.port), alter) as way:
        text = namespace.connection_string().replace(f":{namespace.port}", f":{way.port}")
        return said_to(page, dict.fromkeys(("HUBWEIR_PLAIN", "HUBWEIR_TLS", "HUBWEIR_WRONG_KEY"), text) | environment)


def said_to(page: str, environment: dict[str, str]) -> dict[str, tuple[bool, str]]:
    """What a page of the program says of each of its checks in an environment."""
    try:
        prepare(ALTERED, lambda line: None)
    except NotRun as error:
        pytest.skip(f"NOT RUN: {error}")
    done = subprocess.run(
        ("node", page),
        cwd=ALTERED.folder,
        env=ALTERED.environ(environment),
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


@pytest.mark.sb(142)
@pytest.mark.parametrize("has_counts", [True, False])
def test_without_its_counts_an_answer_has_no_runtime_properties_for_the_client(
    namespace: RunningNamespace, *, has_counts: bool
) -> None:
    def alter(body: bytes) -> bytes:
        altered = re.sub(rb"<CountDetails.*</CountDetails>", b"", body)
        assert altered != body
        return body if has_counts else altered

    with AlteredPages(namespace, alter) as way:
        where = f"sb://{namespace.host}:{way.port}"
        text = f"Endpoint={where};SharedAccessKeyName={ROOT_RULE};SharedAccessKey={DEVELOPMENT_KEY}"
        said = said_to("counts.mjs", {"HUBWEIR_TLS": text, "NODE_EXTRA_CA_CERTS": str(namespace.ca_file)})
    assert said["description"] == (True, "orders")
    ok, detail = said["counts"]
    assert (ok, detail.partition(":")[0]) == ((True, "0") if has_counts else (False, "PARSE_ERROR"))
