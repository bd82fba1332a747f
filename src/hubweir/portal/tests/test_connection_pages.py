"""Who is connected: by which policy, to which entities, since when; in pages, for those who manage the namespace."""

import re

import pytest

from hubweir.amqp.endpoint import EndpointSettings
from hubweir.broker.commands.broker_process import ProcessCommand
from hubweir.broker.commands.command import Answer
from hubweir.drivers.tls import PeerCertificate
from hubweir.gateway.amqp.tests.world import HOST, ROOT, Peer, World
from hubweir.namespace.rights import Rights
from hubweir.portal.quantities import time_words
from hubweir.portal.tests.browser import Browser, signed_in, text_of


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 1, **{f"hub-{number}": 1 for number in range(6)}})


def rows(browser: Browser, query: str = "") -> list[list[str]]:
    """The cells of the table, as they are written."""
    body = browser.get(f"connections{query}").text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("<tr>")[1:]]


def test_a_connection_is_told_with_its_policy_and_entities_as_long_as_it_is_open(world: World) -> None:
    browser = signed_in(world)
    assert "Nobody is connected" in text_of(browser.get("connections"))
    began = time_words(world.env.now_ms())
    peer = world.trusted_peer()
    for _ in range(2):
        peer.sender("orders")
    world.run_for(60_000)
    assert rows(browser) == [["a test", began, "Plain", ROOT, '–<p class="help">peer</p>', "orders", "2"]]
    peer.endpoint.close()
    world.run_for(100)
    assert rows(browser) == []


def test_tokens_prove_by_their_rules_and_who_proved_nothing_has_none(world: World) -> None:
    world.set_rule("reads", Rights.LISTEN, key="a key of it")
    nobody, somebody = world.peer(), world.peer()
    assert somebody.put_token(f"sb://{HOST}/orders", rule="reads", key="a key of it")[0] == 202
    assert [row[3] for row in rows(signed_in(world))] == ["–", "reads"]
    assert nobody.endpoint.remote_open is not None


def test_of_many_entities_some_are_named(world: World) -> None:
    peer = world.trusted_peer(certificate=PeerCertificate("a name", 2**62))
    for number in range(6):
        peer.sender(f"hub-{number}")
    assert [row[2:4] + row[5:] for row in rows(signed_in(world))] == [
        ["TLS", ROOT, "hub-0, hub-1, hub-2, hub-3, hub-4, …", "6"]
    ]


def test_many_come_in_pages(world: World) -> None:
    for _ in range(51):
        world.peer()
    browser = signed_in(world)
    assert (len(rows(browser)), len(rows(browser, "?page=2")), len(rows(browser, "?page=9"))) == (50, 1, 1)
    assert "1–50 of 51" in text_of(browser.get("connections"))


def test_a_process_that_does_not_answer_is_named(world: World) -> None:
    async def silent(index: int, command: ProcessCommand) -> Answer | None:
        return None

    browser = signed_in(world)
    world.peer()
    assert "did not answer" not in text_of(browser.get("connections"))
    world.process.processes, world.process.ask_other = 3, silent
    told = text_of(browser.get("connections"))
    assert "Broker processes 1, 2 did not answer in time" in told and len(rows(browser)) == 1


def test_what_a_peer_says_of_itself_is_text(world: World) -> None:
    peer = Peer(world, EndpointSettings("<script>1</script>", HOST))
    peer.endpoint.open()
    world.run_for(100)
    told = signed_in(world).get("connections").text
    assert "&lt;script&gt;1" in told and "<script>1" not in told


def test_the_rights_to_send_and_listen_are_not_enough(world: World) -> None:
    world.set_rule("uses", Rights.LISTEN | Rights.SEND, key="its key")
    assert signed_in(world, "uses", "its key").get("connections").status == 403
    world.set_rule("one", Rights.ALL, hub="orders", key="its key")
    assert signed_in(world, "one", "its key", entity="orders").get("connections").status == 403
    assert signed_in(world).get("connections").status == 200
