"""The claims of one connection: who gets in, how long a link outlives its token, what ends with a claim."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import encode_message
from hubweir.amqp.transport.events import SaslInitiated
from hubweir.auth.claims import GRACE_MS
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import make_token
from hubweir.drivers.tls import PeerCertificate
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.connection_claims import ConnectionClaims, Lapse
from hubweir.gateway.amqp.tests.world import HOUR_MS, KEY, ROOT, Peer, World, event, put_token, status_of
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.rights import Rights

HUB = "sb://localhost/hub"
READER = "hub/ConsumerGroups/$Default/Partitions/0"


@pytest.fixture
def world() -> World:
    return World(hubs={"hub": 2, "hub2": 1})


@pytest.fixture
def peer(world: World) -> Peer:
    return world.peer()


def good_token(world: World, audience: str = HUB, *, lifetime_ms: int = HOUR_MS) -> str:
    return make_token(audience, ROOT, KEY, (world.env.now_ms() + lifetime_ms) // 1000)


def test_a_link_ends_after_its_token_and_the_grace_and_not_before(peer: Peer) -> None:
    assert peer.put_token(HUB, lifetime_ms=20_000)[0] == 202
    link = peer.receiver(READER, credit=5)
    peer.run(19_000)
    assert peer.is_attached(link)
    peer.run(7_000)
    error = peer.refusal(link)
    assert error.condition == "amqp:unauthorized-access"
    assert "ExpiredToken: The token is expired" in error.description
    assert not peer.is_cut  # the connection stays
    assert peer.put_token(HUB)[0] == 202
    assert peer.is_attached(peer.receiver(READER))


def test_a_refresh_keeps_the_link(peer: Peer) -> None:
    peer.put_token(HUB, lifetime_ms=20_000)
    link = peer.receiver(READER, credit=5)
    peer.run(15_000)
    assert peer.put_token(HUB, lifetime_ms=3_600_000)[0] == 202
    peer.run(60_000)
    assert peer.is_attached(link)


def test_an_expired_token_opens_no_new_link_within_the_grace(peer: Peer) -> None:
    peer.put_token(HUB, lifetime_ms=5_000)
    link = peer.receiver(READER)
    peer.run(6_000)
    assert peer.is_attached(link)
    assert peer.refusal(peer.sender("hub")).condition == "amqp:unauthorized-access"


def test_a_clock_set_back_brings_no_expired_token_to_life(world: World, peer: Peer) -> None:
    token = good_token(world, lifetime_ms=5_000)
    peer.run(6_000)
    assert status_of(peer.request("$cbs", put_token(HUB, token)))[0] == 401
    world.env.jump(-3_600_000)
    assert status_of(peer.request("$cbs", put_token(HUB, token)))[0] == 401


def test_a_sender_whose_token_ended_while_the_clock_jumped_ahead_ends_at_its_next_delivery(
    world: World, peer: Peer
) -> None:
    peer.put_token(HUB, lifetime_ms=60_000)
    link = peer.sender("hub")
    link.send(event(b"one"), settled=False)
    peer.run()
    assert [how for _, _, how in peer.outcomes(link)] == ["accepted"]
    world.env.jump(60_000 + GRACE_MS)  # timers know nothing of it
    link.send(event(b"two"), settled=False)
    peer.run()
    assert "ExpiredToken" in peer.refusal(link).description
    assert [how for _, _, how in peer.outcomes(link)] == ["accepted"]


def test_a_token_without_the_right_in_the_place_of_one_ends_the_sender_at_its_next_delivery(peer: Peer) -> None:
    peer.put_token(HUB, rule="sender")
    link = peer.sender("hub")
    link.send(event(b"one"), settled=False)
    peer.run()
    assert peer.put_token(HUB, rule="listener")[0] == 202
    assert peer.is_attached(link)
    link.send(event(b"two"), settled=False)
    peer.run()
    assert "'Send' claim(s) are required" in peer.refusal(link).description
    assert [how for _, _, how in peer.outcomes(link)] == ["accepted"]


def test_a_good_token_stays_good_when_a_bad_one_follows(peer: Peer) -> None:
    assert peer.put_token(HUB)[0] == 202
    assert peer.put_token(HUB, key="wrong")[0] == 401
    assert peer.is_attached(peer.sender("hub"))


def test_a_token_put_on_one_connection_opens_nothing_on_another(world: World, peer: Peer) -> None:
    assert peer.put_token(HUB)[0] == 202
    assert world.peer().sender("hub").is_attached is False
    assert peer.is_attached(peer.sender("hub"))


def test_a_replaced_key_ends_the_links_that_stand_on_it(world: World, peer: Peer) -> None:
    peer.put_token(HUB, rule="sender")
    link = peer.sender("hub")
    other = world.peer()
    other.put_token(HUB)
    neighbour = other.sender("hub")
    world.set_rule("sender", Rights.SEND, key="another key")
    world.run_for(50)
    error = peer.refusal(link)
    assert error.condition == "amqp:unauthorized-access"
    assert error.description.startswith("Unauthorized access. 'Send' claim(s) are required to perform this operation")
    assert "rule or the key that it rested on was changed or removed" in error.description
    assert "xpired" not in error.description
    assert other.is_attached(neighbour)


def test_a_connection_that_proves_nothing_is_ended_after_a_minute(world: World) -> None:
    idle = world.peer()
    cbs_only = world.peer()
    cbs_only.put_token(HUB)
    cbs_only.sender("$cbs")
    proved = world.peer()
    proved.put_token(HUB)
    link = proved.sender("hub")
    world.run_for(61_000)
    assert idle.is_cut
    assert not cbs_only.endpoint.is_open
    assert proved.is_attached(link)
    closed = [entry for entry in cbs_only.side.events if type(entry).__name__ == "Closed"]
    assert closed[0].error.condition == "amqp:connection:forced"


@pytest.mark.parametrize(
    ("mechanism", "response", "opens"),
    [
        ("PLAIN", f"\0{ROOT}\0{KEY}".encode(), True),
        ("PLAIN", f"{ROOT}\0{ROOT}\0{KEY}".encode(), True),
        ("PLAIN", f"somebody\0{ROOT}\0{KEY}".encode(), False),
        ("PLAIN", f"\0{ROOT}\0wrong".encode(), False),
        ("PLAIN", b"\0nobody\0" + KEY.encode(), False),
        ("PLAIN", b"", False),
        ("EXTERNAL", b"", False),
        ("GSSAPI", b"", False),
    ],
)
def test_sasl_lets_in_who_proves_a_rule_and_nobody_else(
    world: World, mechanism: str, response: bytes, opens: bool
) -> None:
    peer = world.peer(mechanism=mechanism, response=response)
    if opens:
        assert peer.is_attached(peer.sender("hub"))
    else:
        assert not peer.endpoint.is_open
        code = [entry.code for entry in peer.side.events if type(entry).__name__ == "SaslFinished"]
        assert code in ([1], [])


@pytest.mark.parametrize("right", ["key", "wrong key"])
def test_plain_from_another_machine_is_taken_over_tls_or_where_a_setting_allows_it(right: str) -> None:
    response = f"\0{ROOT}\0{KEY if right == 'key' else 'wrong'}".encode()
    closed, allowed = World(), World(settings=GatewaySettings(plain_without_tls=True))
    for world, private, opens in ((closed, False, False), (closed, True, True), (allowed, False, True)):
        peer = world.peer(mechanism="PLAIN", response=response, is_private=private)
        assert peer.endpoint.is_open is (opens and right == "key")
    assert closed.peer(is_private=False).put_token(HUB)[0] == 202  # a token shows no key


def test_plain_on_a_connection_of_which_nothing_is_known_shows_a_key(world: World) -> None:
    claims = world.peer().host.claims
    with pytest.raises(ServiceError, match="over the network it needs TLS"):
        claims.prove(SaslInitiated("PLAIN", f"\0{ROOT}\0{KEY}".encode(), None), None)


def test_claims_are_looked_at_once_until_they_change(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Rights] = []
    look = ConnectionClaims.covered_until_ms

    def counted(self: ConnectionClaims, right: Rights, resource: Scope, why: Lapse) -> int:
        looked.append(right)
        return look(self, right, resource, why)

    monkeypatch.setattr(ConnectionClaims, "covered_until_ms", counted)
    peer.put_token(HUB)
    link = peer.sender("hub")
    for _ in range(2):
        for _ in range(5):
            link.send(event(b"e"), settled=False)
            peer.run()
        peer.put_token(HUB)
    assert [outcome for *_, outcome in peer.outcomes(link)] == ["accepted"] * 10
    assert looked == [Rights.SEND] * 2


def test_a_link_by_certificate_ends_with_the_certificate_and_the_grace_and_not_before(world: World) -> None:
    certificate = PeerCertificate("sender", world.env.now_ms() + 20_000)
    peer = world.peer(mechanism="EXTERNAL", certificate=certificate)
    link = peer.sender("hub")
    peer.run(24_000)
    assert peer.is_attached(link)
    assert not peer.is_attached(peer.sender("hub"))  # no new one within the grace
    peer.run(2_000)
    error = peer.refusal(link)
    assert error.condition == "amqp:unauthorized-access"
    assert "The client's certificate has expired" in error.description and "oken" not in error.description
    assert peer.put_token(HUB)[0] == 202  # the connection stays
    assert peer.is_attached(peer.sender("hub"))


def test_a_link_by_certificate_ends_with_the_rule_and_not_with_a_key(world: World) -> None:
    peer = world.peer(mechanism="EXTERNAL", certificate=PeerCertificate("sender", world.env.now_ms() + HOUR_MS))
    link = peer.sender("hub")
    world.set_rule("sender", Rights.SEND, key="another key")
    peer.run()
    assert peer.is_attached(link)
    world.wait(lambda done: world.gateway.keeper.change_rules(None, lambda level: level.remove("sender"), done))
    peer.run()
    assert peer.refusal(link).condition == "amqp:unauthorized-access"


@pytest.mark.parametrize("name", [None, "nobody"])
def test_a_certificate_that_names_no_rule_opens_nothing(world: World, name: str | None) -> None:
    peer = world.peer(mechanism="EXTERNAL", certificate=PeerCertificate(name, world.env.now_ms() + HOUR_MS))
    assert not peer.endpoint.is_open


@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "MSSBCBS"])
@pytest.mark.parametrize("response", [b"", b"\0RootManageSharedAccessKey", b"anonymous"])
def test_anonymous_mechanisms_never_fail_and_prove_nothing(world: World, mechanism: str, response: bytes) -> None:
    peer = world.peer(mechanism=mechanism, response=response)
    assert peer.endpoint.is_open
    assert not peer.is_attached(peer.sender("hub"))


def test_claims_end_one_after_the_other_and_each_takes_its_own_links() -> None:
    """As of a client whose tokens were put at different times, and that renews one of them only."""
    peer = World(hubs={"hub": 3}).peer(tick_ms=20)
    links = {}
    for partition, lifetime_ms in enumerate((10_000, 20_000, 30_000)):
        assert peer.put_token(f"{HUB}/Partitions/{partition}", lifetime_ms=lifetime_ms)[0] == 202
        links[partition] = peer.sender(f"hub/Partitions/{partition}")
    stands = {}
    for at_s in (12, 18, 28, 40):
        peer.run(at_s * 1_000 - peer.env.monotonic_ms())
        stands[at_s] = [partition for partition, link in links.items() if peer.is_attached(link)]
        if at_s == 18:
            assert peer.put_token(f"{HUB}/Partitions/1", lifetime_ms=60_000)[0] == 202
    assert stands == {12: [0, 1, 2], 18: [1, 2], 28: [1, 2], 40: [1]}
    assert not peer.server.is_closed


def test_tokens_of_a_thousand_partitions_are_all_renewed_in_time() -> None:
    """One connection reads them all, as a processor of JavaScript does: its renewals come all at once."""
    peer = World(hubs={"hub": 1}).peer(tick_ms=50)
    reply, ask = peer.receiver("$cbs", credit=5_000), peer.sender("$cbs")
    for _ in range(2):
        ends_s = (peer.env.now_ms() + 600_000) // 1_000
        for number in range(1_024):
            audience = f"{HUB}/ConsumerGroups/$Default/Partitions/{number}"
            request = encode_message(put_token(audience, make_token(audience, ROOT, KEY, ends_s)))
            while not ask.sendable:
                peer.run(100)
                assert not peer.is_cut
            ask.send(request, settled=False)
            if number == 0:
                peer.receiver(READER)
        peer.run(120_000)
    answers = [status_of(message)[0] for message in peer.received(reply)]
    assert answers == [202] * 2_048
