"""What a page receives is free again, also when an answer comes later than anybody waits."""

import pytest

from hubweir.broker.commands.fragment import CloseReceiver, OpenReceiver, ReceiveMessages
from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.queue_description import QueueDescription
from hubweir.portal import visit
from hubweir.portal.tests.browser import signed_in, text_of


@pytest.mark.parametrize("late", [OpenReceiver, ReceiveMessages])
def test_a_late_answer_leaves_no_receiver_and_no_lock(
    world_with_messages: World, late: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit, "ANSWER_S", 0.05)
    world = world_with_messages
    browser = signed_in(world)
    browser.get("messages/kitchen")
    world.gates[0].hold[late] = []
    answer = browser.ask_late("POST", "/portal/dead-letter/kitchen", count="1")
    assert "no answer within" in text_of(answer)
    world.gates[0].release(late)
    world.run_for(1_000)
    assert len(world.gates[0].sent(CloseReceiver)) == len(world.gates[0].sent(OpenReceiver)) == 1
    page = browser.get("messages/kitchen")
    assert text_of(page).count("Active") >= 2 and "Locked" not in page.text


@pytest.fixture
def world_with_messages() -> World:
    world = World(hubs={"orders": 1})
    world.create(QueueDescription("kitchen"))
    browser = signed_in(world)
    browser.get("send/kitchen")
    for body in ("one", "two"):
        browser.post("send/kitchen", {"body": body})
    return world
