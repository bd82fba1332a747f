"""Two who change one thing at once in a running service: people at the portal, and a Config.json that is read again."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace as replace_fields
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from hubweir.cli.given_settings import configured
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import ROOT_RULE
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.tests.service import Answer
from hubweir.namespace.event_hub_changes import set_settings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import DAY_MS
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleKey
from hubweir.namespace.secret import Secret
from hubweir.portal.tests.browser import fields_of
from hubweir.service.desired_entities import make_entities
from hubweir.service.service import Service
from hubweir.service.taken_settings import change_namespace
from hubweir.service.tests.test_portal_on_demand import ask
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

# Portal


class Person:
    """Somebody at the portal of a running service."""

    def __init__(self, namespace: RunningNamespace) -> None:
        self._namespace = namespace
        form = urlencode({"rule": ROOT_RULE, "secret": "SAS_KEY_VALUE"})
        self._cookie = ask(namespace, "POST", "/portal/sign-in", form)[1]

    def open(self, page: str) -> dict[str, str]:
        """The fields that a browser would send of a page, with its nonce."""
        text = ask(self._namespace, "GET", f"/portal/{page}", cookie=self._cookie)[2]
        nonce = text.partition('name="csrf" value="')[2].partition('"')[0]
        return {"csrf": nonce, **fields_of(Answer(200, {}, text.encode()))}

    def save(self, page: str, fields: dict[str, str]) -> int:
        return ask(self._namespace, "POST", f"/portal/{page}", urlencode(fields), self._cookie)[0]


def at_once(*calls: Callable[[], int]) -> list[int]:
    start, answers = threading.Barrier(len(calls)), list[int]()

    def run(call: Callable[[], int]) -> None:
        start.wait(60)
        answers.append(call())

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return answers


@pytest.mark.parametrize("brokers", [1, pytest.param(3, marks=pytest.mark.skipif(
    sys.platform != "linux", reason="broker processes are for Linux"))])  # fmt: skip
def test_people_who_save_at_once_keep_what_each_of_them_touched(brokers: int) -> None:
    touched = [{"max_delivery_count": "7"}, {"lock_duration": "30 seconds"}, {"user_metadata": "ours"},
               {"time_to_live": "2 days"}, {"max_size": "3072"}]  # fmt: skip
    with running_namespace(brokers=brokers) as namespace:
        namespace.create(QueueDescription("kitchen"))
        people = [Person(namespace) for _ in touched]
        pages = [person.open("settings/kitchen") for person in people]
        saves = zip(people, pages, touched, strict=True)
        answers = at_once(*(partial(who.save, "settings/kitchen", {**page, **its}) for who, page, its in saves))
        assert answers == [303] * len(touched)
        left = Person(namespace).open("settings/kitchen")
    for its in touched:
        assert its.items() <= left.items()


# Config.json


HUB = {"Name": "h", "PartitionCount": 1, "ConsumerGroups": []}
Entities = Callable[[], Any]


def write(folder: Path, **config: Any) -> Path:
    file = folder / "Config.json"
    file.write_text(json.dumps({"UserConfig": config}))
    return file


def with_hub(folder: Path, hub: dict[str, Any], **namespace: Any) -> Path:
    return write(folder, NamespaceConfig=[{"Name": "ns", "Entities": [hub], **namespace}],
                 LoggingConfig={"Type": "Console"})  # fmt: skip


def started(file: Path, look: Callable[[Gateway, Entities], Awaitable[None]]) -> None:
    """Start with the file as `hubweir serve` does; look gets the gateway, and what reads the file again."""
    given = {"data": str(file.parent / "data"), "port": (0,), "emulator_config": (str(file),)}

    async def run() -> None:
        service = await Service.start(*configured(given, {}, None))
        try:
            await look(service.gateway, lambda: configured(given, {}, None)[1].default.entities)
        finally:
            await service.stop()

    run_on("asyncio", run())


def test_a_file_that_is_read_again_undoes_no_change_of_a_queue_that_is_under_way(tmp_path: Path) -> None:
    async def look(gateway: Gateway, entities: Entities) -> None:
        write(tmp_path, Namespaces=[{"Name": "ns", "Queues": [
            {"Name": "q", "Properties": {"LockDuration": "PT30S", "MaxDeliveryCount": 4}}]}])  # fmt: skip
        seen = gateway.namespace.get("q", QueueDescription).description
        delivery = replace_fields(seen.delivery, max_delivery_count=7, forward_to="q")
        theirs = replace(seen, user_metadata="theirs", delivery=delivery)
        its = partial(replace_settings, wanted=theirs, seen=seen)
        gateway.keeper.change("q", QueueDescription, its, lambda _: None)
        await make_entities(gateway, entities())
        queue = gateway.namespace.get("q", QueueDescription).description
        assert (queue.user_metadata, queue.delivery.forward_to) == ("theirs", "q")
        assert (queue.delivery.lock_duration.text, queue.delivery.max_delivery_count) == ("PT30S", 4)

    started(write(tmp_path, Namespaces=[{"Name": "ns", "Queues": [{"Name": "q"}]}]), look)


def test_a_file_that_is_read_again_undoes_no_change_of_a_hub_that_is_under_way(tmp_path: Path) -> None:
    async def look(gateway: Gateway, entities: Entities) -> None:
        with_hub(tmp_path, {**HUB, "MessageRetentionInDays": 2})
        seen = gateway.management.hub("h")
        its = partial(set_settings, wanted=replace(seen, user_metadata="theirs"), seen=seen)
        gateway.keeper.change("h", EventHubDescription, its, lambda _: None)
        await make_entities(gateway, entities())
        hub = gateway.management.hub("h")
        assert (hub.user_metadata, hub.retention_ms) == ("theirs", 2 * DAY_MS)

    started(with_hub(tmp_path, HUB), look)


def test_a_key_that_is_renewed_while_a_file_is_read_again_stays_renewed(tmp_path: Path) -> None:
    rule = {"KeyName": "r", "PrimaryKey": "one"}

    async def look(gateway: Gateway, entities: Entities) -> None:
        with_hub(tmp_path, HUB, AuthorizationRules=[{**rule, "Rights": ["Listen"]}])
        gateway.rules.renew(None, "r", RuleKey.SECONDARY, lambda _: None, secret=Secret("renewed"))
        await make_entities(gateway, entities())
        after = gateway.rules.rule(None, "r")
        assert (after.rights, after.primary.reveal(), after.secondary.reveal()) == (Rights.LISTEN, "one", "renewed")

    started(with_hub(tmp_path, HUB, AuthorizationRules=[{**rule, "Rights": ["Send"]}]), look)


def test_the_root_rule_keeps_a_secondary_key_that_is_renewed_while_its_primary_one_changes(tmp_path: Path) -> None:
    async def look(gateway: Gateway, _: Entities) -> None:
        gateway.rules.renew(None, ROOT_RULE, RuleKey.SECONDARY, lambda _: None, secret=Secret("renewed"))
        profile = gateway.settings.profile.name
        said = NamespaceSettings(name="ns", stored_name="ns", is_default=True, profile=profile, key="another")
        await change_namespace(gateway, said)
        after = gateway.rules.rule(None, ROOT_RULE)
        assert (after.primary.reveal(), after.secondary.reveal()) == ("another", "renewed")

    started(with_hub(tmp_path, HUB), look)
