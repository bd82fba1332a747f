"""refusals.py: a line a refusal, with the reference that the peer sees."""

from __future__ import annotations

import logging

import pytest

from hubweir.gateway.refusals import Refusals, What
from hubweir.namespace.entity import EntityKind
from hubweir.service_log import Line
from hubweir.testing.simulated_env import SimulatedEnv

TEXT = "There is no such hub."


@pytest.fixture
def env() -> SimulatedEnv:
    return SimulatedEnv(3)


@pytest.fixture
def refusals(env: SimulatedEnv, caplog: pytest.LogCaptureFixture) -> Refusals:
    caplog.set_level(logging.INFO)
    return Refusals(env, namespace="ns", process_id=4)


def refuse(refusals: Refusals, count: int, what: What = What.ATTACH, symbol: str = "amqp:not-found") -> list[str]:
    return [refusals.describe(what, symbol, TEXT, entity="orders", peer="10.1.2.3:4567") for _ in range(count)]


def test_a_line_has_the_text_that_the_peer_sees_with_its_id_and_says_who_and_what(
    refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    (described,) = refuse(refusals, 1)
    assert described.startswith(f"{TEXT}, TrackingId:") and "SystemTracker:ns:eventhub:orders," in described
    (line,) = caplog.messages
    assert line == f"attach refused: amqp:not-found, peer 10.1.2.3:4567, entity 'orders': {described}"


def test_a_reference_names_an_entity_as_its_service_does(env: SimulatedEnv) -> None:
    kinds = {"orders": EntityKind.QUEUE, "news": EntityKind.TOPIC, "news/Subscriptions/all": EntityKind.SUBSCRIPTION}
    refusals = Refusals(env, namespace="ns", process_id=4, kind_of=kinds.get)
    for name, tracker in (
        ("orders", "ns:Queue:orders"),
        ("news", "ns:Topic:news"),
        ("news/Subscriptions/all", "ns:Subscription:news/subscriptions/all"),
        ("absent", "ns:eventhub:absent"),
    ):
        described = refusals.describe(What.LINK, "amqp:not-allowed", TEXT, entity=name, peer="p")
        assert f"SystemTracker:{tracker}," in described


def test_without_an_entity_the_process_is_the_tracker(refusals: Refusals) -> None:
    assert "SystemTracker:ns:gateway4," in refusals.describe(What.CONNECTION, "amqp:connection:forced", TEXT, peer="p")


def test_each_condition_of_each_refused_thing_is_counted_apart(
    refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    refuse(refusals, 2)
    refuse(refusals, 1, What.SEND)
    refuse(refusals, 1, symbol="amqp:unauthorized-access")
    lines = [record.msg for record in caplog.records]
    assert [(line.kind.name, line.sort) for line in lines if isinstance(line, Line)] == [
        ("attach-refused", "amqp:not-found"),
        ("attach-refused", "amqp:not-found"),
        ("send-refused", "amqp:not-found"),
        ("attach-refused", "amqp:unauthorized-access"),
    ]


def test_a_long_text_keeps_its_reference_and_a_peers_characters_make_no_line_of_their_own(
    refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    text = "no\nsuch\x1b[31m" + "x" * 5_000
    described = refusals.describe(What.REQUEST, "amqp:not-found", text, entity="a\r\nb" + "y" * 5_000, peer="p")
    (line,) = caplog.messages
    assert "no?such?[31mxxx" in line and "a??by" in line and len(line) < 1_500
    assert described[described.index("TrackingId:") :] in line
