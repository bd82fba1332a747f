"""hubweir status against a live service: what people see, the JSON, the exit code, who may ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner, Result

from hubweir.alarms import DAMAGE, LOG_OFFLINE
from hubweir.auth.shared_access_signature import make_token
from hubweir.cli.main import hubweir
from hubweir.client.authorization_rules import AuthorizationRules
from hubweir.client.connection import Connection
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

LISTENER_KEY = "a-listener's-key"


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as namespace:
        namespace.create_event_hub("orders", partition_count=2)
        namespace.create_queue("kitchen")
        yield namespace


def status(namespace: RunningNamespace, *arguments: str) -> Result:
    target = ["--connection-string", namespace.connection_string()]
    return CliRunner().invoke(hubweir, ["status", *arguments, *target], catch_exceptions=False)


def begin(namespace: RunningNamespace, kind: object, about: str) -> None:
    async def call() -> None:
        namespace.parts.alarms.begin(kind, about, "it is so")  # type: ignore[arg-type]

    namespace.run(call())


def end(namespace: RunningNamespace, about: str) -> None:
    async def call() -> None:
        namespace.parts.alarms.end_all(about)

    namespace.run(call())


def test_a_sound_service_shows_its_stores_alone_and_with_all_every_log(namespace: RunningNamespace) -> None:
    asked = status(namespace)
    assert asked.exit_code == 0 and "namespace hubweir: healthy" in asked.output
    assert "store 0" in asked.output and "orders" not in asked.output
    every = status(namespace, "--all").output
    assert every.count("event-hub orders") == 2 and "queue kitchen" in every and "0 to 0" in every


def test_trouble_is_shown_with_its_alarm_and_ends_with_1_when_it_blocks(namespace: RunningNamespace) -> None:
    log_id = json.loads(status(namespace, "--json").output)["entities"] and first_log(namespace)
    about = f"partition 0 of orders in namespace hubweir (log {log_id})"
    begin(namespace, DAMAGE, about)
    asked = status(namespace)
    assert asked.exit_code == 0 and "degraded" in asked.output
    assert "event-hub orders" in asked.output and f"alarm damage, for 0 s: {about}: it is so" in asked.output
    begin(namespace, LOG_OFFLINE, about)
    asked = status(namespace)
    assert asked.exit_code == 1 and "unhealthy" in asked.output and "log-offline" in asked.output
    end(namespace, about)
    assert status(namespace).exit_code == 0


def first_log(namespace: RunningNamespace) -> str:
    return str(next(iter(namespace.service.broker._residents)).log.log_id)


def test_as_json_it_is_the_document(namespace: RunningNamespace) -> None:
    found = json.loads(status(namespace, "--json").output)
    assert {each["name"] for each in found["entities"]} == {"orders", "kitchen"}


def ask(namespace: RunningNamespace, path: str, rule: str, key: str) -> tuple[int, bytes]:
    token = make_token("sb://127.0.0.1/", rule, key, 4_000_000_000)
    request = Request(f"http://{namespace.host}:{namespace.port}{path}", headers={"Authorization": token})
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except HTTPError as refused:
        return refused.code, refused.read()


@pytest.mark.parametrize("path", ["/status", "/$status"])
def test_who_may_not_manage_is_told_nothing(namespace: RunningNamespace, path: str) -> None:
    async def make_rule() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        try:
            rules = AuthorizationRules(connection)
            if all(rule.name != "listener" for rule in await rules.list_rules()):
                await rules.create_rule("listener", ("Listen", "Send"), primary=LISTENER_KEY)
        finally:
            await connection.close()

    asyncio.run(make_rule())
    code, body = ask(namespace, path, "listener", LISTENER_KEY)
    assert code == 401 and b"orders" not in body
    assert ask(namespace, path, ROOT_RULE, DEVELOPMENT_KEY)[0] == 200


def test_an_entity_with_the_name_is_shown_at_its_address(namespace: RunningNamespace) -> None:
    namespace.create_queue("status")
    assert b"QueueDescription" in ask(namespace, "/Status", ROOT_RULE, DEVELOPMENT_KEY)[1]
    assert json.loads(ask(namespace, "/$status", ROOT_RULE, DEVELOPMENT_KEY)[1])["namespace"]["name"] == "hubweir"
