"""Requests by how they ended; names that nobody has made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hubweir.errors import (
    INTERNAL_ERROR,
    NOT_FOUND,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    STORE_OFFLINE,
    TIMED_OUT,
    UNAUTHORIZED,
    Condition,
)
from hubweir.gateway.entity_traffic import EntityTraffic, NamespaceTraffic
from hubweir.metrics import (
    INCOMING_REQUESTS,
    OUTGOING_BYTES,
    OUTGOING_MESSAGES,
    QUOTA_EXCEEDED_ERRORS,
    SERVER_ERRORS,
    SUCCESSFUL_REQUESTS,
    THROTTLED_REQUESTS,
    USER_ERRORS,
    Samples,
)


class Namespace:
    """Has the entities of these names, in any case."""

    description = SimpleNamespace(name="shop")

    def __init__(self, *names: str) -> None:
        self.names = {name.lower(): name for name in names}

    def find_any(self, name: str) -> Any:
        found = self.names.get(name.lower())
        return None if found is None else SimpleNamespace(description=SimpleNamespace(name=found))


@pytest.mark.parametrize(
    ("condition", "field"),
    [
        (SERVER_BUSY, "throttled"),
        (RESOURCE_LIMIT, "over_quota"),
        (INTERNAL_ERROR, "server_errors"),
        (STORE_OFFLINE, "server_errors"),
        (TIMED_OUT, "server_errors"),
        (NOT_FOUND, "user_errors"),
        (UNAUTHORIZED, "user_errors"),
    ],
)
def test_refused_requests_count_by_their_condition(condition: Condition, field: str) -> None:
    traffic = EntityTraffic()
    traffic.refused(condition, 3)
    assert traffic == EntityTraffic(**{field: 3})


@pytest.mark.parametrize(
    ("status", "field"),
    [
        (200, "successful"),
        (204, "successful"),
        (399, "successful"),
        (400, "user_errors"),
        (404, "user_errors"),
        (499, "user_errors"),
        (500, "server_errors"),
        (503, "throttled"),
        (504, "server_errors"),
    ],
)
def test_requests_over_http_count_by_their_status(status: int, field: str) -> None:
    traffic = EntityTraffic()
    traffic.answered(status)
    assert traffic == EntityTraffic(requests=1, **{field: 1})


def test_an_entity_has_one_traffic_however_its_name_is_written() -> None:
    traffic = NamespaceTraffic(Namespace("Orders"))  # type: ignore[arg-type]
    traffic.of("orders").requests += 1
    traffic.of("ORDERS").requests += 1
    samples = Samples()
    list(traffic.measure(samples))
    assert samples[INCOMING_REQUESTS] == {("shop", "Orders"): 2}


def test_names_that_nobody_has_made_count_for_the_namespace_and_take_no_memory() -> None:
    traffic = NamespaceTraffic(Namespace())  # type: ignore[arg-type]
    for number in range(1_000):
        traffic.of(f"made up {number}").user_errors += 1
    samples = Samples()
    list(traffic.measure(samples))
    assert samples[USER_ERRORS] == {("shop", ""): 1_000}


def test_an_entity_that_gets_the_name_of_one_that_is_gone_begins_at_zero() -> None:
    namespace = Namespace("orders")
    traffic = NamespaceTraffic(namespace)  # type: ignore[arg-type]
    old = traffic.of("orders")
    traffic.forget("orders")
    old.requests += 1  # a link that stood then
    traffic.of("orders").requests += 5
    samples = Samples()
    list(traffic.measure(samples))
    assert samples[INCOMING_REQUESTS] == {("shop", "orders"): 5}


def test_each_field_is_shown_as_its_own_metric() -> None:
    traffic = NamespaceTraffic(Namespace("orders"))  # type: ignore[arg-type]
    its = traffic.of("orders")
    shown = {
        "requests": INCOMING_REQUESTS,
        "successful": SUCCESSFUL_REQUESTS,
        "server_errors": SERVER_ERRORS,
        "user_errors": USER_ERRORS,
        "throttled": THROTTLED_REQUESTS,
        "over_quota": QUOTA_EXCEEDED_ERRORS,
        "messages_out": OUTGOING_MESSAGES,
        "bytes_out": OUTGOING_BYTES,
    }
    assert set(shown) == set(EntityTraffic.__struct_fields__)
    for value, field in enumerate(shown):
        setattr(its, field, value)
    samples = Samples()
    list(traffic.measure(samples))
    assert {metric: series["shop", "orders"] for metric, series in samples.items()} == {
        metric: value for value, metric in enumerate(shown.values())
    }
