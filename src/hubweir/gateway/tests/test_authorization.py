"""Both kinds of token at one gateway: judged by their text, taken, refreshed, ended. (auth/ tests each kind alone)"""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import Message
from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.tests.world import KEY, ROOT, Peer, World, put_token, status_of
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.testing.token_issuer import AUDIENCE, ISSUER, TestIssuer, claims_until

SAS, JWT = "servicebus.windows.net:sastoken", "jwt"
HUB = "sb://localhost/hub"
SENDER, RECEIVER, OWNER = (f"Azure Event Hubs Data {role}" for role in ("Sender", "Receiver", "Owner"))


@pytest.fixture(scope="module")
def issuer() -> TestIssuer:
    return TestIssuer()


@pytest.fixture
def world(issuer: TestIssuer) -> World:
    trusted = IssuerKeys(ISSUER, AUDIENCE, issuer.keys_file)
    return World(settings=GatewaySettings(issuer=trusted))


def put(peer: Peer, token: str, *, kind: str = JWT, audience: str = HUB) -> tuple[int, str]:
    request: Message = put_token(audience, token, kind=kind)
    return status_of(peer.request("$cbs", request))


def token_of(issuer: TestIssuer, world: World, *roles: str, seconds: int = 600) -> str:
    return issuer.token(claims_until(world.env.now_ms() // 1000 + seconds, *roles))


@pytest.mark.parametrize("kind", [SAS, JWT, "", "anything"])
def test_a_token_is_what_its_text_says_whatever_it_is_declared_as(world: World, issuer: TestIssuer, kind: str) -> None:
    signature = make_token(HUB, ROOT, KEY, 2_000_000_000)
    for token in (signature, token_of(issuer, world, OWNER)):
        peer = world.peer()
        assert put(peer, token, kind=kind)[0] == 202
        assert peer.is_attached(peer.sender("hub"))


@pytest.mark.parametrize(("role", "sends", "receives"), [(SENDER, True, False), (RECEIVER, False, True), ("x", 0, 0)])
def test_a_role_gives_its_right_and_no_other(
    world: World, issuer: TestIssuer, role: str, sends: bool, receives: bool
) -> None:
    peer = world.peer()
    assert put(peer, token_of(issuer, world, role))[0] == 202
    assert peer.is_attached(peer.sender("hub")) == sends
    assert peer.is_attached(peer.receiver("hub/ConsumerGroups/$Default/Partitions/0")) == receives


def test_a_token_that_ends_takes_its_links_along_unless_another_came_in_time(world: World, issuer: TestIssuer) -> None:
    peer = world.peer()
    assert put(peer, token_of(issuer, world, SENDER, seconds=60))[0] == 202
    link = peer.sender("hub")
    world.run_for(50_000)
    assert put(peer, token_of(issuer, world, SENDER, seconds=60))[0] == 202
    world.run_for(59_000)
    assert peer.refusal(link) is None
    world.run_for(7_000)
    assert peer.refusal(link).condition == "amqp:unauthorized-access"
    assert "expired" in peer.refusal(link).description
    code, text = put(peer, token_of(issuer, world, SENDER, seconds=-1))
    assert (code, text.partition(".")[0]) == (401, "ExpiredToken: The token is expired")


def test_rules_may_change_without_harm_to_links_that_stand_on_the_issuer(world: World, issuer: TestIssuer) -> None:
    peer = world.peer()
    put(peer, token_of(issuer, world, SENDER))
    link = peer.sender("hub")
    world.set_rule(ROOT, world.namespace.rule(None, ROOT).rights, key="another")
    world.run_for(5_000)
    assert peer.refusal(link) is None


def test_a_key_that_its_issuer_took_back_ends_the_links_that_stand_on_it(issuer: TestIssuer) -> None:
    content = [issuer.keys_file()]
    keys = IssuerKeys(ISSUER, AUDIENCE, lambda: content[0])
    world = World(settings=GatewaySettings(issuer=keys))
    keys.follow(world.env, 2_000, world.process.alarms)
    peer, other = world.peer(), world.peer()
    assert put(peer, token_of(issuer, world, SENDER))[0] == 202
    assert other.put_token(HUB)[0] == 202
    by_token, by_signature = peer.sender("hub"), other.sender("hub")
    content[0] = TestIssuer().keys_file()
    world.run_for(4_000)
    assert peer.refusal(by_token).condition == "amqp:unauthorized-access"
    assert other.is_attached(by_signature)
    assert put(peer, token_of(issuer, world, SENDER))[0] == 401


def test_a_hub_that_is_not_there_is_told_to_good_tokens_only(world: World, issuer: TestIssuer) -> None:
    good, bad = token_of(issuer, world, OWNER), token_of(TestIssuer(), world, OWNER)
    assert put(world.peer(), good, audience="sb://localhost/absent")[0] == 404
    code, text = put(world.peer(), bad, audience="sb://localhost/absent")
    assert (code, text.partition(":")[0]) == (401, "InvalidSignature")


def test_without_an_issuer_no_such_token_is_looked_at(issuer: TestIssuer) -> None:
    world = World()
    code, text = put(world.peer(), token_of(issuer, world, OWNER))
    assert (code, text.partition(":")[0]) == (401, "MalformedToken")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("queue", 202), ("QUEUE/$DeadLetterQueue", 202), ("queue/$management", 202), ("topic/Subscriptions/sub", 202),
        ("topic/subscriptions/sub/$DeadLetterQueue/$management", 202), ("topic", 202), ("", 202), ("missing", 404),
        ("topic/Subscriptions/missing", 404), ("missing/Subscriptions/sub", 404), ("queue/Subscriptions/sub", 404),
        ("queue/partitions/0", 404), ("topic/$DeadLetterQueue", 404),
    ],
)  # fmt: skip
def test_a_token_for_what_is_not_there_is_told_so(world: World, path: str, status: int) -> None:
    """Of a queue, a topic or a subscription; only to whose token is good and covers it."""
    for description in (
        QueueDescription("queue"), TopicDescription("topic"), SubscriptionDescription("topic/Subscriptions/sub"),
    ):  # fmt: skip
        world.create(description)
    audience = f"sb://localhost/{path}"
    code, text = put(world.peer(), make_token("sb://localhost", ROOT, KEY, 2_000_000_000), kind=SAS, audience=audience)
    assert code == status
    assert ("The messaging entity" in text and "could not be found" in text) == (status == 404)
    assert put(world.peer(), make_token("sb://localhost", ROOT, "wrong", 2_000_000_000), kind=SAS)[0] == 401
