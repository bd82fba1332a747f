"""What sends leave behind at their links for garbage collections to look at."""

from __future__ import annotations

import pytest

from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.gateway.amqp.tests.world import World, event, keyed
from hubweir.testing.garbage import come_and_stay


@pytest.mark.own_interpreter
def test_a_send_leaves_no_lists_behind_that_a_collection_looks_at() -> None:
    peer = World().trusted_peer()
    links = [peer.sender(f"hub/Partitions/{number}") for number in range(4)]

    def send() -> None:
        for link in links:
            link.send(event(b"one"), settled=False)
        peer.run(100)

    send()
    left = come_and_stay(send)
    assert [len(peer.outcomes(link)) for link in links] == [2] * 4 and left["list"] < 2 * len(links), left


def test_what_is_settled_once_is_not_gathered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some sends are accepted and some refused, each of a turn at another partition."""
    peer, settle, spans = World().trusted_peer(), ReceiverLink.settle, list[tuple[int, int]]()

    def noted(link: ReceiverLink, first_id: int, last_id: int, state: object) -> None:
        spans.append((first_id, last_id))
        settle(link, first_id, last_id, state)  # type: ignore[arg-type]

    link = peer.sender("hub")
    monkeypatch.setattr(ReceiverLink, "settle", noted)
    for _ in range(3):
        for number in range(8):
            link.send(keyed(b"x", "k" * 129 if number == 3 else str(number)), settled=False)
        peer.run(100)
    assert sorted(each for first, last in spans for each in range(first, last + 1)) == list(range(24))
    assert {outcome for *_, outcome in peer.outcomes(link)} >= {"accepted"} and len(peer.outcomes(link)) > 3
