"""Publishers: tokens that are theirs alone, and their revocation while they send."""

from __future__ import annotations

from functools import partial
from typing import Any

from hubweir.errors import NOT_FOUND, RESOURCE_LIMIT, ServiceError
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.namespace.event_hub_changes import REVOKED_PUBLISHERS_LIMIT, restore_publisher, revoke_publisher
from hubweir.namespace.event_hub_description import EventHubDescription

ADDRESS = "hub/Publishers/alpha"
AUDIENCE = "sb://localhost/hub/publishers/alpha"
UNAUTHORIZED = "amqp:unauthorized-access"


def revoke(world: World, publisher: str = "alpha") -> Any:
    return world.wait(
        lambda done: world.gateway.keeper.change(
            "hub", EventHubDescription, partial(revoke_publisher, publisher=publisher), done
        )
    )


def restore(world: World, publisher: str = "alpha") -> Any:
    return world.wait(
        lambda done: world.gateway.keeper.change(
            "hub", EventHubDescription, partial(restore_publisher, publisher=publisher), done
        )
    )


def condition(peer: Peer, link: Any) -> str | None:
    error = peer.refusal(link)
    return None if error is None else str(error.condition)


def test_a_publishers_token_attaches_as_that_publisher_and_as_nothing_else(world: World) -> None:
    peer = world.peer()
    assert peer.put_token(AUDIENCE, rule="sender")[0] == 202
    assert peer.is_attached(peer.sender(ADDRESS))
    assert peer.is_attached(peer.sender("HUB/publishers/ALPHA"))  # scopes have no case
    for other in ("hub/Publishers/beta", "hub/Publishers/alph", "hub/Publishers/alphab", "hub", "hub/Partitions/0"):
        assert condition(peer, peer.sender(other)) == UNAUTHORIZED, other
    status, text = peer.put_token("sb://localhost/hub/publishers/beta", rule="sender", resource=AUDIENCE)
    assert status == 401 and text.startswith("InvalidAudience:")


def test_revoking_ends_the_publishers_links_and_no_others(world: World) -> None:
    peer, other = world.trusted_peer(), world.trusted_peer()
    links = [peer.sender(ADDRESS), peer.sender("hub/Publishers/ALPHA")]
    kept = [other.sender("hub/Publishers/beta"), other.sender("hub")]
    links[0].send(event(b"taken"), settled=False)
    peer.run(100)
    assert isinstance(revoke(world), EventHubDescription)
    peer.run(100)  # of the 5 s that it may take
    assert [condition(peer, link) for link in links] == [UNAUTHORIZED] * 2
    assert "'alpha'" in peer.refusal(links[0]).description and "revoked" in peer.refusal(links[0]).description
    assert all(other.is_attached(link) for link in kept)
    assert len(peer.outcomes(links[0])) == 1


def test_a_revoked_publisher_gets_no_link_and_no_token(world: World) -> None:
    revoke(world)
    trusted, peer = world.trusted_peer(), world.peer()
    assert condition(trusted, trusted.sender(ADDRESS)) == UNAUTHORIZED
    assert condition(trusted, trusted.sender("hub/publishers/ALPHA")) == UNAUTHORIZED
    status, text = peer.put_token(AUDIENCE, rule="sender")
    assert status == 401 and "revoked" in text
    assert peer.put_token("sb://localhost/hub/publishers/beta", rule="sender")[0] == 202
    assert peer.is_attached(peer.sender("hub/Publishers/beta"))


def test_who_was_restored_may_send_again_and_both_survive_a_crash(world: World) -> None:
    revoke(world)
    revoke(world, "beta")
    revoke(world, "ALPHA")  # in another case it is the same
    world.env.crash(power_cut=True)
    after = World(env=world.env.restart())
    assert after.namespace.get("hub", EventHubDescription).description.revoked_publishers == ("alpha", "beta")
    peer = after.trusted_peer()
    assert condition(peer, peer.sender(ADDRESS)) == UNAUTHORIZED
    restore(after, "Alpha")
    assert peer.is_attached(peer.sender(ADDRESS))
    assert condition(peer, peer.sender("hub/Publishers/beta")) == UNAUTHORIZED


def test_what_cannot_be_revoked_or_restored_is_refused(world: World) -> None:
    answer = restore(world)
    assert isinstance(answer, ServiceError) and answer.condition is NOT_FOUND
    for name in ("", "a/b", "x" * 129, "a\x00"):
        assert isinstance(revoke(world, name), ServiceError), name
    for number in range(REVOKED_PUBLISHERS_LIMIT):
        change = partial(revoke_publisher, publisher=f"p{number}")
        world.gateway.keeper.change("hub", EventHubDescription, change, lambda _: None)
        if number % 500 == 499:
            world.run_for(60_000)
    answer = revoke(world, "one-more")
    assert isinstance(answer, ServiceError) and answer.condition is RESOURCE_LIMIT
