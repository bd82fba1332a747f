"""The demo's second act, from what is sent to what is found wrong. The act itself runs in `./run demo`."""

from __future__ import annotations

import importlib
import json
from itertools import chain
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[2] / "demo"


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as the demo has it: its folder is on the path."""
    monkeypatch.syspath_prepend(str(DEMO))
    module = importlib.import_module("orders")
    monkeypatch.setattr(module, "AIRCRAFT_COUNT", 2)
    monkeypatch.setattr(module, "FLIGHT_COUNT", 3)
    return module


def flights(tail: str | None, carriers: str, count: int = 3) -> tuple[str | None, list[Any]]:
    """Flights of one aircraft, for these carriers in turn."""
    names = carriers.split()
    return tail, [flight(tail, names[place % len(names)], place) for place in range(count)]


def flight(tail: str | None, carrier: str, place: int) -> Any:
    event = {
        "carrier": carrier,
        "flight": place,
        "origin": tail,
        "time_hour": "2013-01-01T10Z",
        "dep_delay": place,
    }
    return SimpleNamespace(tail=tail, carrier=carrier, body=json.dumps(event).encode())


def records(orders: ModuleType, seen: list[Any]) -> Any:
    made = orders.Records()
    for each in seen:
        made.add(each.tail, each.carrier, each.body)
    return made


def test_the_first_aircraft_of_each_carrier_that_fly_often_enough_are_chosen(orders: ModuleType) -> None:
    by_tail = [
        flights(None, "UA"),
        flights("N1", "UA", 4),
        flights("few", "UA", 2),
        flights("two carriers", "UA DL"),
        flights("no subscription", "HA"),
        flights("N2", "DL"),
        flights("N3", "UA"),
        flights("one too many", "UA"),
    ]
    chosen = orders.choose(by_tail)
    assert {tail: len(each) for tail, each in chosen.items()} == {"N1": 3, "N2": 3, "N3": 3}


def test_sessions_come_mixed_and_each_in_its_order_with_no_flight_left_out(orders: ModuleType) -> None:
    sent = list(orders.in_turn([flights("N1", "UA")[1], flights("N2", "DL", 2)[1]]))
    assert [orders.message_id(each)[:7] for each in sent] == ["UA 0 N1", "DL 0 N2", "UA 1 N1", "DL 1 N2", "UA 2 N1"]


def test_every_flight_is_sent_whatever_a_batch_holds(orders: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "SEND_COUNT", 2)
    batches: list[list[str]] = []

    class Sender:
        def __enter__(self) -> Sender:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def send_messages(self, messages: list[Any]) -> None:
            batches.append([message.message_id for message in messages])

    _, sent = flights("N1", "UA", 5)
    orders.send(SimpleNamespace(get_topic_sender=lambda _: Sender()), iter(sent), lambda _: None)
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert list(chain(*batches)) == [orders.message_id(each) for each in sent]


@pytest.mark.parametrize(
    ("order", "finding"),
    [
        pytest.param([0, 1], "UA: 3 flights, 2 records", id="one lost"),
        pytest.param([0, 1, 1, 2], "UA: 3 flights, 4 records", id="one twice"),
        pytest.param([0, 2, 1], "order or content differs for 1 keys, first N1", id="out of order"),
    ],
)
def test_planted_faults_are_found(orders: ModuleType, order: list[int], finding: str) -> None:
    _, sent = flights("N1", "UA")
    expected = records(orders, sent)
    assert orders.findings(expected, expected) == []
    seen = records(orders, [sent[place] for place in order])
    assert finding in orders.findings(expected, seen)
    assert not orders.in_order("N1", expected, seen)


def test_a_flight_in_the_subscription_of_another_carrier_is_found(orders: ModuleType) -> None:
    _, sent = flights("N1", "UA")
    seen = orders.Records()
    for each in sent:
        seen.add(each.tail, "DL", each.body)
    assert orders.findings(records(orders, sent), seen) == ["DL: 0 flights, 3 records", "UA: 3 flights, 0 records"]
