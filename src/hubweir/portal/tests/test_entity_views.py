"""Lists and pages of entities: what they show is what there is, in pages, and nothing of it is taken for markup."""

import pytest

from hubweir.broker.commands.fragment import AskFragmentInfo
from hubweir.broker.commands.partition import AskPartitionInfo
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.portal.tests.browser import signed_in, text_of


def test_an_empty_namespace_says_what_to_do_next() -> None:
    browser = signed_in(World(hubs={"last": 1}))
    browser.post("delete/last", {"confirmed": "last"})
    for page, told in (("event-hubs", "No event hubs yet"), ("queues", "No queues yet"), ("topics", "No topics yet")):
        assert told in text_of(browser.get(page))
        assert 'href="/portal/create-' in browser.get(page).text


def test_lists_come_in_pages_by_name_and_are_searched() -> None:
    world = World()
    for number in range(60):
        world.create(QueueDescription(f"queue-{number:02}"))
    browser = signed_in(world)
    first = browser.get("queues")
    assert "queue-00" in first.text and "queue-49" in first.text and "queue-50" not in first.text
    assert "1–50 of 60" in text_of(first) and 'rel="next" href="/portal/queues?page=2"' in first.text
    second = browser.get("queues?page=2")
    assert "queue-50" in second.text and "queue-49" not in second.text
    found = browser.get("queues?search=E-05")
    assert "queue-05" in found.text and "queue-06" not in found.text
    assert "No queue's name holds “zebra”" in text_of(browser.get("queues?search=zebra"))


def test_a_search_asks_for_the_rows_alone() -> None:
    world = World(hubs={"orders": 1})
    part = signed_in(world).get("event-hubs?search=ord", hx_request="true")
    assert "<html" not in part.text and "orders" in part.text


def test_what_is_searched_for_is_no_markup() -> None:
    page = signed_in(World(hubs={"orders": 1})).get("event-hubs?search=%3Cscript%3Ealert(1)%3C/script%3E%22%3E")
    assert "<script>alert" not in page.text and '"">' not in page.text and "&lt;script&gt;" in page.text


def test_user_metadata_is_no_markup() -> None:
    world = World()
    world.create(EventHubDescription("orders", 1, user_metadata="<img src=x onerror=alert(1)>"))
    browser = signed_in(world)
    for page in ("entity/orders", "settings/orders"):
        assert "<img" not in browser.get(page).text and "&lt;img" in browser.get(page).text


def test_a_hub_shows_each_partition_with_its_store_and_why_one_does_not_answer() -> None:
    world = World(hubs={"orders": 4}, stores=2)
    browser = signed_in(world)
    told = text_of(browser.get("entity/orders"))
    assert "0 store-0 Available" in told and "1 store-1 Available" in told
    world.gates[1].refuse[AskPartitionInfo] = Refusal(STORE_OFFLINE, "messaging store store-1 is away")
    told = text_of(browser.get("entity/orders"))
    assert "0 store-0 Available" in told and "1 store-1 Unavailable messaging store store-1 is away" in told


def test_partitions_come_in_pages() -> None:
    browser = signed_in(World(hubs={"orders": 32}))
    assert "Next" not in text_of(browser.get("entity/orders"))
    assert text_of(browser.get("entity/orders")).count("Available") == 32


def test_a_partitioned_queue_shows_each_fragment_as_queue_show_does() -> None:
    world = World(stores=2)
    world.create(QueueDescription("orders", storage=StorageSettings(is_partitioned=True)))
    world.gates[1].refuse[AskFragmentInfo] = Refusal(STORE_OFFLINE, "messaging store store-1 is away")
    browser = signed_in(world)
    for page in ("entity/orders", "fragments/orders"):
        told = text_of(browser.get(page))
        assert "Fragments" in told and told.count("Available") == 8 and told.count("Unavailable") == 8
        assert "store-1 Unavailable messaging store store-1 is away" in told
        assert "its part is missing from these figures" in told


def test_who_may_send_alone_sees_no_settings_and_is_asked_for_the_entity() -> None:
    world = World(hubs={"orders": 1})
    world.set_rule("sender", Rights.SEND, key="send key")
    browser = signed_in(world, "sender", "send key")
    first = browser.get("")
    assert "Open an entity" in text_of(first) and "orders" not in first.text
    there = browser.follow(browser.get("open?name=orders"))
    assert "orders" in text_of(there) and "Partition count" not in text_of(there)
    assert "Settings" not in text_of(there).replace("settings and counts", "")
    assert browser.get("entity/none").status == 404


@pytest.mark.parametrize("page", ["", "event-hubs", "queues", "topics", "create-queue"])
def test_pages_name_no_other_site(page: str) -> None:
    text = signed_in(World()).get(page).text
    assert "http://" not in text and "https://" not in text and 'href="//' not in text
