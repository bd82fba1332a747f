"""A token that renews a claim on $cbs: it counts at once, and its answer comes a little later."""

from __future__ import annotations

from hubweir.amqp.messaging.message import encode_message
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.cbs_node import RENEWAL_ANSWER_MS, RENEWAL_LEAST_MS
from hubweir.gateway.amqp.tests.world import HOUR_MS, KEY, ROOT, World, delete_token, put_token, status_of

HUB = "sb://localhost/hub"
READER = "hub/ConsumerGroups/$Default/Partitions/0"


def token_for(world: World, audience: str, lifetime_ms: int) -> str:
    return make_token(audience, ROOT, KEY, (world.env.now_ms() + lifetime_ms) // 1000)


def test_a_renewal_counts_at_once_and_its_answer_does_not_overtake_whoever_asked() -> None:
    world = World(hubs={"hub": 2, "hub2": 1})
    peer = world.peer()
    reply, ask = peer.receiver("$cbs", credit=100), peer.sender("$cbs")

    def put(*, lifetime_ms: int, audience: str = HUB) -> None:
        token = token_for(world, audience, lifetime_ms)
        ask.send(encode_message(put_token(audience, token)), settled=False)
        peer.run(RENEWAL_ANSWER_MS - 10)

    def answers() -> int:
        return len(peer.received(reply))

    put(lifetime_ms=20_000)
    assert answers() == 1 and peer.is_attached(reader := peer.receiver(READER))
    put(lifetime_ms=20_000 + RENEWAL_LEAST_MS - 2_000)  # of a further link, which waits for it
    assert answers() == 2
    put(lifetime_ms=20_000, audience="sb://localhost/hub2")  # of something else
    assert answers() == 3
    put(lifetime_ms=HOUR_MS)
    assert answers() == 3
    peer.run(20)
    assert answers() == 4 and all(status_of(answer)[0] == 202 for answer in peer.received(reply))
    peer.run(60_000)
    assert peer.is_attached(reader)
    put(lifetime_ms=HOUR_MS // 2)  # it ends sooner
    assert answers() == 5
    ask.send(encode_message(delete_token(HUB)), settled=False)
    peer.run(RENEWAL_ANSWER_MS - 10)
    assert answers() == 6


def test_a_connection_that_ends_before_its_renewal_is_answered_ends_all_the_same() -> None:
    world = World(hubs={"hub": 2, "hub2": 1})
    peer = world.peer()
    assert peer.put_token(HUB)[0] == 202
    peer.sender("$cbs").send(encode_message(put_token(HUB, token_for(world, HUB, 2 * HOUR_MS))), settled=False)
    peer.run(RENEWAL_ANSWER_MS // 2)
    assert world.process.budget.used > 0
    peer.cut()
    world.run_for(1_000)
    assert world.process.budget.used == 0
