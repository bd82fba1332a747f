"""Tokens that replace others on $cbs: they count at once, and Azure's clients for Java hear of them a little later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.amqp.messaging.message import encode_message
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.cbs_node import RENEWAL_ANSWER_MS
from hubweir.gateway.amqp.tests.world import HOUR_MS, KEY, ROOT, Peer, World, delete_token, put_token, status_of

HUB = "sb://localhost/hub"
READER = "hub/ConsumerGroups/$Default/Partitions/0"
JAVA = ("azure-messaging-eventhubs", "azure-messaging-servicebus")


class Client:
    """A connection that puts tokens, by the product that its open names."""

    def __init__(self, product: str) -> None:
        self.world = World(hubs={"hub": 2, "hub2": 1})
        self.peer: Peer = self.world.peer()
        connection = self.peer.server._connection
        assert connection.remote_open is not None
        connection.remote_open = replace(connection.remote_open, properties={"product": product})
        self._reply, self._ask = self.peer.receiver("$cbs", credit=100), self.peer.sender("$cbs")

    def put(self, *, lifetime_ms: int = HOUR_MS, audience: str = HUB) -> None:
        token = make_token(audience, ROOT, KEY, (self.world.env.now_ms() + lifetime_ms) // 1000)
        self._ask.send(encode_message(put_token(audience, token)), settled=False)

    def delete(self) -> None:
        self._ask.send(encode_message(delete_token(HUB)), settled=False)

    def answers(self, within_ms: int) -> int:
        """How many there are so far; each of them says that it was done."""
        self.peer.run(within_ms)
        told = self.peer.received(self._reply)
        assert all(status_of(answer)[0] == 202 for answer in told)
        return len(told)


SOON_MS = RENEWAL_ANSWER_MS - 10


@pytest.mark.parametrize("product", JAVA)
def test_a_renewal_counts_at_once_and_its_answer_does_not_overtake_whoever_asked(product: str) -> None:
    client = Client(product)
    client.put(lifetime_ms=20_000)
    assert client.answers(SOON_MS) == 1 and client.peer.is_attached(reader := client.peer.receiver(READER))
    client.put(lifetime_ms=20_000, audience="sb://localhost/hub2")
    assert client.answers(SOON_MS) == 2, "it replaces none"
    client.put()
    assert client.answers(SOON_MS) == 2
    assert client.answers(20) == 3
    client.peer.run(60_000)
    assert client.peer.is_attached(reader)
    client.delete()
    assert client.answers(SOON_MS) == 4
    client.put()
    assert client.answers(SOON_MS) == 5, "it replaces none any more"


def test_links_that_renew_one_after_the_other_for_the_same_audience_are_all_answered_late() -> None:
    """Each link of that client has a timer of its own; the receivers of many sessions of one queue renew together."""
    client = Client(JAVA[1])
    client.put(lifetime_ms=60_000)
    assert client.answers(54_000) == 1
    for _ in range(3):
        client.put(lifetime_ms=60_000)
        client.peer.run(20)
    assert client.answers(30) == 1
    assert client.answers(RENEWAL_ANSWER_MS) == 4


def test_other_clients_wait_for_no_answer() -> None:
    """They put a token for each link, for which it waits: one that accepts session after session would be held up."""
    client = Client("MSJSClient")
    client.put(lifetime_ms=20_000)
    client.put()
    assert client.answers(10) == 2


def test_a_connection_that_ends_before_its_renewal_is_answered_ends_all_the_same() -> None:
    client = Client(JAVA[0])
    client.put()
    assert client.answers(SOON_MS) == 1
    client.put()
    client.peer.run(RENEWAL_ANSWER_MS // 2)
    assert client.world.process.budget.used > 0
    client.peer.cut()
    client.world.run_for(1_000)
    assert client.world.process.budget.used == 0
