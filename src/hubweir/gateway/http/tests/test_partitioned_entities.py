"""Queues and topics of several fragments over HTTP: where these are, what they hold, what the loss of a store does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from xml.etree import ElementTree

import pytest

from hubweir.event_hub.partition_key import partition_of_key
from hubweir.gateway.http.atom import SERVICE_BUS
from hubweir.gateway.http.tests.messaging_forms import ANY, QUEUE, SUBSCRIPTION, TOPIC, described, detail, text
from hubweir.gateway.http.tests.service import Answer, Http, token
from hubweir.service.completions import done
from hubweir.testing.running_namespace import running_namespace

PARTITIONED = "<MaxSizeInMegabytes>2048</MaxSizeInMegabytes><EnablePartitioning>true</EnablePartitioning>"


@pytest.fixture
def stores() -> Iterator[Http]:
    """A service of three stores."""
    with running_namespace(stores=3) as namespace:
        yield Http(namespace)


def take_away(http: Http, store: int) -> None:
    http.namespace.run(done(http.namespace.service.stores[store].take_away))


def bring_back(http: Http, store: int) -> None:
    async def back() -> None:
        http.namespace.service.stores[store].bring_back()

    http.namespace.run(back())


def until(ask: Callable[[], Any], wanted: object) -> None:
    """It takes a while until all logs of a store are open again."""
    end_s = time.monotonic() + 60
    while (found := ask()) != wanted and time.monotonic() < end_s:
        time.sleep(0.05)
    assert found == wanted


def fragments(answer: Answer) -> list[dict[str, str]]:
    assert answer.status == 200, answer.text
    found = ElementTree.fromstring(answer.body).iter(f"{{{SERVICE_BUS}}}FragmentDescription")
    return [{child.tag.rpartition("}")[2]: child.text or "" for child in each} for each in found]


def send(http: Http, path: str, body: str, session: str) -> int:
    return http.call("POST", f"/{path}/messages", body, BrokerProperties=f'{{"PartitionKey": "{session}"}}').status


def told(http: Http, path: str, name: str) -> str | None:
    return text(http.call("GET", f"/{path}").body, name)


def test_what_fragments_hold_is_summed_and_each_is_shown_where_it_is(stores: Http) -> None:
    made = stores.call("PUT", "/orders", described(QUEUE, PARTITIONED))
    assert (made.status, text(made.body, "MaxSizeInMegabytes"), text(made.body, "EnablePartitioning")) == (
        201, "32768", "true",
    )  # fmt: skip
    assert [send(stores, "orders", "tea", f"key-{number}") for number in range(40)] == [201] * 40
    assert told(stores, "orders", "MessageCount") == "40"
    assert told(stores, "orders", "EntityAvailabilityStatus") == "Available"
    rows = fragments(stores.call("GET", "/orders/$Fragments"))
    assert [row["Number"] for row in rows] == [str(number) for number in range(16)]
    assert sorted({row["Store"] for row in rows}) == ["0", "1", "2"]
    assert {row["Status"] for row in rows} == {"Available"} and len({row["Log"] for row in rows}) == 16
    sizes = [int(row["SizeInBytes"]) for row in rows]
    assert told(stores, "orders", "SizeInBytes") == str(sum(sizes)) and sum(size > 0 for size in sizes) > 8
    stores.call("PUT", "/plain", described(QUEUE))
    [row] = fragments(stores.call("GET", "/plain/$fragments"))
    assert row["Number"] == "0"


def test_fragments_are_shown_to_who_may_manage_and_of_what_is_there(stores: Http) -> None:
    stores.call("PUT", "/news", described(TOPIC, PARTITIONED))
    stores.call("PUT", "/news/subscriptions/all", described(SUBSCRIPTION))
    assert send(stores, "news", "tea", "key") == 201
    for path in ("/news/$Fragments", "/news/Subscriptions/all/$Fragments"):
        assert len(fragments(stores.call("GET", path))) == 16
        assert stores.call("GET", path, auth=None).status == 401
    until(partial(told, stores, "news/subscriptions/all", "MessageCount"), "1")
    for path in ("/none/$Fragments", "/news/Subscriptions/none/$Fragments"):
        assert stores.call("GET", path, auth=token()).status == 404


def test_a_store_that_is_away_makes_its_entities_limited_and_takes_nothing_else_down(stores: Http) -> None:
    stores.call("PUT", "/orders", described(QUEUE, PARTITIONED))
    keys = [f"key-{number}" for number in range(32)]
    assert {send(stores, "orders", "tea", key) for key in keys} == {201}
    take_away(stores, 1)
    assert told(stores, "orders", "EntityAvailabilityStatus") == "Limited"
    rows = fragments(stores.call("GET", "/orders/$Fragments"))
    away = [row for row in rows if row["Status"] == "Unavailable"]
    assert {row["Store"] for row in away} == {"1"} and len(away) in (5, 6)
    assert all("store-1 is away" in row["Reason"] and "SizeInBytes" not in row for row in away)
    outcomes = [send(stores, "orders", "milk", key) for key in keys]
    assert set(outcomes) == {201, 503}, "a key has its fragment, and no other"
    assert all(stores.call("POST", "/orders/messages", "any").status == 201 for _ in range(20)), "without a key"
    bring_back(stores, 1)
    until(partial(told, stores, "orders", "EntityAvailabilityStatus"), "Available")
    assert told(stores, "orders", "MessageCount") == str(32 + outcomes.count(201) + 20)


def test_an_entity_is_changed_as_far_as_its_stores_are_there_and_the_rest_later(stores: Http) -> None:
    stores.call("PUT", "/orders", described(QUEUE, PARTITIONED))
    take_away(stores, 1)
    more = PARTITIONED + "<LockDuration>PT13S</LockDuration>"
    changed = stores.call("PUT", "/orders", described(QUEUE, more), **ANY)
    assert changed.status == 503
    said = detail(changed.body)
    assert "store-1 is away" in said and "The settings of queue 'orders' are stored" in said
    assert told(stores, "orders", "LockDuration") == "PT13S"
    [lost, *_] = [
        each["Number"] for each in fragments(stores.call("GET", "/orders/$Fragments")) if each["Store"] == "1"
    ]
    key = next(key for key in map(str, range(400)) if partition_of_key(key.encode(), 16) == int(lost))
    bring_back(stores, 1)
    until(partial(told, stores, "orders", "EntityAvailabilityStatus"), "Available")
    assert send(stores, "orders", "tea", key) == 201
    locked = json.loads(stores.call("POST", "/orders/messages/head").headers["brokerproperties"])
    assert parsedate_to_datetime(locked["LockedUntilUtc"]).timestamp() - time.time() <= 13, "of the settings that came"
    assert stores.call("PUT", "/orders", described(QUEUE, more), **ANY).status == 200


def test_a_subscription_of_a_partitioned_topic_is_refused_and_nothing_of_it_stays_at_other_stores(
    stores: Http,
) -> None:
    stores.call("PUT", "/news", described(TOPIC, PARTITIONED))
    take_away(stores, 1)
    refused = stores.call("PUT", "/news/subscriptions/all", described(SUBSCRIPTION))
    assert refused.status == 503 and "store-1 is away" in detail(refused.body)
    assert stores.call("GET", "/news/subscriptions/all").status == 404
    assert stores.call("POST", "/news/messages", "tea").status == 201
    bring_back(stores, 1)
    until(lambda: stores.call("PUT", "/news/subscriptions/all", described(SUBSCRIPTION)).status, 201)
    assert told(stores, "news/subscriptions/all", "MessageCount") == "0", "none came to a part of the refused one"


def test_an_entity_that_cannot_be_removed_wholly_is_served_no_more_and_goes_later(
    stores: Http,
) -> None:
    stores.call("PUT", "/orders", described(QUEUE, PARTITIONED))
    take_away(stores, 1)
    gone = stores.call("DELETE", "/orders")
    assert gone.status == 503 and "not all of it is removed yet" in detail(gone.body)
    assert stores.call("GET", "/orders").status == 404
    again = stores.call("PUT", "/orders", described(QUEUE))
    assert again.status == 409 and "is being deleted" in detail(again.body)
    bring_back(stores, 1)
    until(lambda: stores.call("PUT", "/orders", described(QUEUE)).status, 201)
    assert len(fragments(stores.call("GET", "/orders/$Fragments"))) == 1


def test_while_a_store_is_away_others_take_what_has_one_log_and_nothing_partitioned_is_made(stores: Http) -> None:
    take_away(stores, 0)
    refused = stores.call("PUT", "/orders", described(QUEUE, PARTITIONED))
    assert refused.status == 503 and "these are away: store-0. Create it when" in detail(refused.body)
    for name in ("orders", "a", "b"):
        assert stores.call("PUT", f"/{name}", described(QUEUE)).status == 201
        assert fragments(stores.call("GET", f"/{name}/$Fragments"))[0]["Store"] in ("1", "2")
    bring_back(stores, 0)
    until(lambda: stores.call("PUT", "/all", described(QUEUE, PARTITIONED)).status, 201)
    assert {row["Store"] for row in fragments(stores.call("GET", "/all/$Fragments"))} == {"0", "1", "2"}


def test_a_version_from_before_partitioning_knows_none(stores: Http) -> None:
    old, new = "?api-version=2013-08", "?api-version=2013-10"
    for kind, path in ((QUEUE, "orders"), (TOPIC, "news")):
        made = stores.call("PUT", f"/{path}{old}", described(kind, PARTITIONED))
        assert (made.status, text(made.body, "EnablePartitioning")) == (201, None)
        assert (
            told(stores, path, "EnablePartitioning") == "false" and told(stores, path, "MaxSizeInMegabytes") == "2048"
        )
        stores.call("DELETE", f"/{path}")
        made = stores.call("PUT", f"/{path}{new}", described(kind, PARTITIONED))
        assert (made.status, text(made.body, "EnablePartitioning")) == (201, "true")
        assert text(stores.call("GET", f"/{path}{old}").body, "EnablePartitioning") is None
        for inside in ("", PARTITIONED):
            changed = stores.call("PUT", f"/{path}{old}", described(kind, inside), **ANY)
            assert changed.status == 200, "what it does not know it does not change"
        assert told(stores, path, "EnablePartitioning") == "true"
        assert len(fragments(stores.call("GET", f"/{path}/$Fragments"))) == 16


@pytest.mark.parametrize("kind", [QUEUE, TOPIC])
def test_an_update_with_other_partitioning_is_refused_in_the_premium_tier_too(kind: str) -> None:
    """There it is always on: an update that says nothing of it means that."""
    flag = "<EnablePartitioning>{}</EnablePartitioning>".format
    with running_namespace(profile="premium") as namespace:
        http = Http(namespace)
        for name, asked in (("a", ""), ("b", flag("false")), ("c", flag("true"))):
            made = http.call("PUT", f"/{name}", described(kind, asked))
            assert (made.status, text(made.body, "EnablePartitioning")) == (201, "true")
        refused = http.call("PUT", "/a", described(kind, flag("false")), **ANY)
        assert refused.status == 400
        assert detail(refused.body).startswith("SubCode=40000. Partitioning cannot be changed for ")
        for asked in ("", flag(""), flag("true")):
            changed = http.call(
                "PUT", "/a", described(kind, f"<UserMetadata>{len(asked)}</UserMetadata>{asked}"), **ANY
            )
            assert (changed.status, text(changed.body, "EnablePartitioning")) == (200, "true")
            assert text(changed.body, "UserMetadata") == str(len(asked))


@pytest.mark.parametrize("asked", [1_024, 5_120, 10_240, 40_960])
def test_a_size_that_was_told_may_be_sent_back_and_is_multiplied_once(stores: Http, asked: int) -> None:
    partitioned = "<MaxSizeInMegabytes>{}</MaxSizeInMegabytes><EnablePartitioning>true</EnablePartitioning>"
    made = stores.call("PUT", "/orders", described(QUEUE, partitioned.format(asked)))
    whole = str(16 * asked)
    assert (made.status, text(made.body, "MaxSizeInMegabytes")) == (201, whole)
    for size in (whole, asked, whole):
        changed = stores.call("PUT", "/orders", described(QUEUE, partitioned.format(size)), **ANY)
        assert (changed.status, text(changed.body, "MaxSizeInMegabytes")) == (200, whole)
