"""Requests on authorization rules over $management, and what a change does to links that stand."""

from __future__ import annotations

import logging

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.rule_requests import AUTHORIZATION_RULE, RULE_OPERATIONS
from hubweir.gateway.amqp.tests.world import KEY, ROOT, Peer, World, status_of

LEVELS = ["", "hub"]


def ask(peer: Peer, operation: str, name: str, body: object = None, **properties: object) -> Message:
    said: dict[str, object] = {"operation": operation, "type": AUTHORIZATION_RULE, "name": name, **properties}
    return peer.request(
        "$management",
        Message(properties=Properties(message_id="m"), application_properties=said, body=ValueBody(body)),
    )


def value(answer: Message, code: int = 200) -> dict[str, str]:
    assert status_of(answer)[0] == code, status_of(answer)
    assert isinstance(answer.body, ValueBody)
    return answer.body.value  # type: ignore[return-value]


@pytest.mark.parametrize("name", LEVELS)
def test_a_rule_lives_from_create_to_delete(peer: Peer, name: str) -> None:
    made = value(ask(peer, "CREATE", name, {"rights": ["Send", "listen"]}, rule="mine"), 201)
    assert (made["name"], made["type"], made["rights"]) == ("mine", AUTHORIZATION_RULE, ["Listen", "Send"])
    assert len(made["primary_key"]) == len(made["secondary_key"]) == 44
    read = value(ask(peer, "READ", name, rule="MINE"))
    assert read == {"name": "mine", "type": AUTHORIZATION_RULE, "rights": ["Listen", "Send"]}
    assert read in list(value(ask(peer, "LIST", name)))
    assert value(ask(peer, "READKEYS", name, rule="mine")) == made
    renewed = value(ask(peer, "RENEWKEY", name, {"key": "secondary"}, rule="mine"))
    assert renewed["primary_key"] == made["primary_key"]
    assert renewed["secondary_key"] != made["secondary_key"]
    given = value(ask(peer, "RENEWKEY", name, {"key": "primary", "value": "given"}, rule="mine"))
    assert given["primary_key"] == "given"
    assert value(ask(peer, "UPDATE", name, {"rights": ["Manage", "Send", "Listen"]}, rule="mine"))["rights"] == [
        "Listen",
        "Manage",
        "Send",
    ]
    assert value(ask(peer, "DELETE", name, rule="mine"))["name"] == "mine"
    assert status_of(ask(peer, "READ", name, rule="mine"))[0] == 404


@pytest.mark.parametrize(
    ("operation", "body", "code", "text"),
    [
        ("CREATE", {"rights": ["Manage"]}, 400, "Manage must have Send and Listen"),
        ("CREATE", {"rights": []}, 400, "at least one right"),
        ("CREATE", {"rights": "Send"}, 400, "list"),
        ("CREATE", {"rights": ["Read"]}, 400, "no right"),
        ("CREATE", {"rights": ["Send"], "primary_key": 7}, 400, "'primary_key' must be a string"),
        ("CREATE", {"rights": ["Send"], "keys": "x"}, 400, "does not take 'keys'"),
        ("CREATE", ["Send"], 400, "one AMQP map"),
        ("UPDATE", {"rights": ["Send"]}, 404, "could not be found"),
        ("RENEWKEY", {"key": "third"}, 400, "primary or secondary"),
        ("RENEWKEY", {"key": "primary"}, 404, "could not be found"),
        ("READKEYS", None, 404, "could not be found"),
        ("DELETE", None, 404, "could not be found"),
    ],
)
def test_what_cannot_be_is_refused(peer: Peer, operation: str, body: object, code: int, text: str) -> None:
    answer = ask(peer, operation, "hub", body, rule="absent")
    assert status_of(answer)[0] == code
    assert text in status_of(answer)[1]
    assert list(value(ask(peer, "LIST", "hub"))) == []


def test_a_rule_needs_a_name_and_one_of_a_name_is_enough(peer: Peer) -> None:
    body = {"rights": ["Send"]}
    assert status_of(ask(peer, "CREATE", "hub", body))[0] == 400
    assert status_of(ask(peer, "CREATE", "hub", body, rule="r"))[0] == 201
    assert status_of(ask(peer, "CREATE", "hub", body, rule="R"))[0] == 409
    for number in range(11):
        assert status_of(ask(peer, "CREATE", "hub", body, rule=f"r{number}"))[0] == 201
    assert status_of(ask(peer, "CREATE", "hub", body, rule="over"))[0] == 403


@pytest.mark.parametrize("operation", RULE_OPERATIONS)
def test_every_operation_needs_manage_at_its_level(world: World, operation: str) -> None:
    """A hub's token with Manage does not reach the namespace's rules; Send and Listen reach none."""
    body = {"rights": ["Send"]} if operation in ("CREATE", "UPDATE") else None
    for rule in ("sender", "listener"):
        token = make_token("sb://localhost/", rule, KEY, 2_000_000_000)
        answer = ask(world.peer(), operation, "hub", body, rule="r", security_token=token)
        assert status_of(answer)[0] == 401
    token = make_token("sb://localhost/hub", ROOT, KEY, 2_000_000_000)
    assert status_of(ask(world.peer(), operation, "", body, rule=ROOT, security_token=token))[0] == 401
    assert status_of(ask(world.peer(), operation, "hub", body, rule="r", security_token=token))[0] != 401


CHANGES = {
    "renewed": ("RENEWKEY", {"key": "primary"}),
    "rights cut": ("UPDATE", {"rights": ["Listen"]}),
    "deleted": ("DELETE", None),
}


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_ends_the_links_that_stood_on_the_rule_and_no_other(
    world: World, peer: Peer, change: str, name: str
) -> None:
    keys = value(ask(peer, "CREATE", name, {"rights": ["Send"]}, rule="policy"), 201)
    clients = {}
    for key in ("primary_key", "secondary_key"):
        client = clients[key] = world.peer()
        assert client.put_token("sb://localhost/hub", rule="policy", key=keys[key])[0] == 202
    links = {key: client.sender("hub") for key, client in clients.items()}
    operation, body = CHANGES[change]
    value(ask(peer, operation, name, body, rule="policy"))
    world.run_for(4_900)
    assert clients["primary_key"].refusal(links["primary_key"]).condition == "amqp:unauthorized-access"
    stands = clients["secondary_key"].refusal(links["secondary_key"]) is None
    assert stands == (change == "renewed")
    code = clients["primary_key"].put_token("sb://localhost/hub", rule="policy", key=keys["primary_key"])[0]
    assert code == (202 if change == "rights cut" else 401)


def test_keys_are_in_no_log_line(world: World, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        made = value(ask(peer, "CREATE", "hub", {"rights": ["Send"], "secondary_key": "seeded"}, rule="r"), 201)
        for body in ({"rights": ["Send"], "primary_key": "seeded"}, {"rights": ["x"], "primary_key": "seeded"}):
            ask(peer, "CREATE", "hub", body, rule="r")
        ask(peer, "RENEWKEY", "hub", {"key": "seeded"}, rule="r")
        world.peer().put_token("sb://localhost/hub", rule="r", key="wrong")
    assert "InvalidSignature" in caplog.text
    assert "seeded" not in caplog.text
    assert made["primary_key"] not in caplog.text
