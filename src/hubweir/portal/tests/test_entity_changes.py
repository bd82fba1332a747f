"""Creating, changing and deleting entities as a person does: forms filled, mistakes told, nothing done by halves."""

import pytest

from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.settings import GatewaySettings
from hubweir.messaging_store.log import Durability
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import DAY_MS, HOUR_MS, MINUTE_MS
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.tiers import PROFILES
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.tests.browser import Browser, signed_in, text_of

HUB = {"partition_count": "3", "retention": "7 days", "durability": "relaxed", "status": "Active", "user_metadata": ""}
QUEUE = {
    "max_size": "2048", "max_delivery_count": "4", "time_to_live": "1 day", "lock_duration": "30 s",
    "auto_delete_on_idle": "never", "duplicate_window": "10 minutes", "status": "Active", "user_metadata": "mine",
    "forward_to": "", "forward_dead_letters_to": "",
}  # fmt: skip
TOPIC = {key: QUEUE[key] for key in ("max_size", "time_to_live", "auto_delete_on_idle", "duplicate_window", "status")}
SUBSCRIPTION = {
    key: QUEUE[key] for key in ("max_delivery_count", "time_to_live", "lock_duration", "auto_delete_on_idle", "status")
}


@pytest.fixture
def browser() -> Browser:
    return signed_in(World(hubs={"orders": 2}, stores=2))


def test_an_event_hub_is_made_as_the_form_says(browser: Browser) -> None:
    assert "Partition count" in text_of(browser.get("create-event-hub"))
    page = browser.follow(browser.post("create-event-hub", {**HUB, "name": "bills/eu"}))
    hub = browser.world.gateway.management.hub("bills/eu")
    assert (hub.partition_count, hub.retention_ms, hub.durability) == (3, 7 * DAY_MS, Durability.RELAXED)
    assert "It is created." in text_of(page) and "bills/eu" in text_of(page)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"name": "orders"}, "exists already"), ({"name": "a b"}, "a b"), ({"name": ""}, "name"),
     ({"partition_count": "33"}, "1 to 32 are allowed"), ({"partition_count": "many"}, "must be a whole number"),
     ({"retention": "soon"}, "is no length of time"), ({"retention": "1 minute"}, "1 hour"),
     ({"durability": "eternal"}, "must be one of Durable, Relaxed"), ({"status": ""}, "must be one of Active")],
)  # fmt: skip
def test_a_mistake_is_told_beside_what_was_entered(browser: Browser, change: dict[str, str], told: str) -> None:
    answer = browser.post("create-event-hub", {**HUB, "name": "new", "user_metadata": "kept text", **change})
    assert answer.status in (400, 409) and told in text_of(answer) and "kept text" in answer.text
    assert len(browser.world.namespace.entities(EventHubDescription)) == 1


def test_a_queue_is_made_with_all_settings(browser: Browser) -> None:
    ticked = {"duplicate_detection": "on", "partitioning": "on", "sessions": "on", "dead_letters_on_expiration": "on"}
    browser.follow(browser.post("create-queue", {**QUEUE, **ticked, "name": "kitchen"}))
    entity = browser.world.namespace.get("kitchen", QueueDescription)
    queue = entity.description
    assert (queue.storage.max_size_megabytes, queue.delivery.max_delivery_count) == (2_048, 4)
    assert (queue.default_time_to_live.ms, queue.delivery.lock_duration.ms) == (DAY_MS, 30_000)
    assert queue.storage.requires_duplicate_detection and queue.storage.is_partitioned
    assert queue.delivery.requires_session and queue.delivery.dead_letters_on_expiration
    assert queue.user_metadata == "mine" and len(entity.placements) == 16


def test_a_topic_and_a_subscription_are_made(browser: Browser) -> None:
    browser.follow(browser.post("create-topic", {**TOPIC, "name": "news"}))
    assert browser.world.namespace.get("news", TopicDescription).description.storage.max_size_megabytes == 2_048
    assert "No subscriptions yet" in text_of(browser.get("entity/news"))
    page = browser.follow(browser.post("create-subscription/news", {**SUBSCRIPTION, "name": "all", "sessions": "on"}))
    made = browser.world.namespace.get("news/Subscriptions/all", SubscriptionDescription).description
    assert made.delivery.requires_session and made.delivery.max_delivery_count == 4
    assert not made.dead_letters_on_filter_errors, "the box was not ticked"
    assert "every message" in text_of(page)
    assert browser.post("create-subscription/none", {**SUBSCRIPTION, "name": "x"}).status == 404
    assert browser.post("create-subscription/news", {**SUBSCRIPTION, "name": "a/b"}).status == 400


def test_settings_are_changed_and_what_was_not_touched_stays(browser: Browser) -> None:
    page = browser.get("settings/orders")
    assert 'value="1 day"' in page.text and "Fixed when it was created." in page.text
    fields = {"retention": "36 h", "durability": "durable", "status": "SendDisabled", "user_metadata": "note"}
    browser.follow(browser.post("settings/orders", {**fields, "partition_count": "9"}))
    hub = browser.world.gateway.management.hub("orders")
    assert (hub.retention_ms, hub.availability, hub.user_metadata) == (36 * HOUR_MS, Availability.SEND_DISABLED, "note")
    assert hub.partition_count == 2 and hub.consumer_groups == ("$Default",)


def test_settings_of_a_queue_are_changed_also_back_to_no_tick(browser: Browser) -> None:
    browser.post("create-queue", {**QUEUE, "name": "kitchen", "dead_letters_on_expiration": "on", "sessions": "on"})
    browser.follow(browser.post("settings/kitchen", {**QUEUE, "lock_duration": "2 min", "forward_to": "kitchen"}))
    queue = browser.world.namespace.get("kitchen", QueueDescription).description
    assert queue.delivery.lock_duration.ms == 2 * MINUTE_MS and queue.delivery.forward_to == "kitchen"
    assert not queue.delivery.dead_letters_on_expiration and queue.delivery.requires_session
    refused = browser.post("settings/kitchen", {**QUEUE, "lock_duration": "6 minutes"})
    assert refused.status == 400 and "PT5M" in text_of(refused) and 'value="6 minutes"' in refused.text


def test_a_deletion_asks_for_the_name(browser: Browser) -> None:
    assert "cannot be undone" in text_of(browser.get("delete/orders"))
    for typed in ("", "order", "orders2"):
        assert browser.post("delete/orders", {"confirmed": typed}).status == 400
        assert browser.world.namespace.find_any("orders")
    page = browser.follow(browser.post("delete/orders", {"confirmed": "orders"}))
    assert not browser.world.namespace.find_any("orders")
    assert "It is deleted." in text_of(page) and "No event hubs yet" in text_of(page)


def test_a_subscription_is_deleted_by_its_own_name_and_the_topic_stays(browser: Browser) -> None:
    browser.post("create-topic", {**TOPIC, "name": "news"})
    browser.post("create-subscription/news", {**SUBSCRIPTION, "name": "all"})
    answer = browser.post("delete/news/Subscriptions/all", {"confirmed": "all"})
    assert answer.headers["location"] == "/portal/entity/news?notice=deleted"
    assert browser.world.namespace.find_any("news") and not browser.world.namespace.find_any("news/Subscriptions/all")


def test_consumer_groups_are_added_and_deleted(browser: Browser) -> None:
    browser.follow(browser.post("consumer-groups/orders", {"name": "audit", "user_metadata": "for Ada"}))
    assert browser.world.gateway.management.hub("orders").consumer_groups == ("$Default", "audit")
    assert "for Ada" in text_of(browser.get("consumer-groups/orders"))
    again = browser.post("consumer-groups/orders", {"name": "AUDIT"})
    assert again.status == 409 and "audit" in text_of(again)
    browser.follow(browser.post("delete-consumer-group/orders", {"name": "audit"}))
    assert browser.world.gateway.management.hub("orders").consumer_groups == ("$Default",)
    assert browser.post("delete-consumer-group/orders", {"name": "$Default"}).status == 400


def test_forwarding_asks_for_the_right_at_the_destination_where_the_tier_does() -> None:
    world = World(settings=GatewaySettings(profile=PROFILES["standard"]))
    root = signed_in(world)
    for name in ("from", "to"):
        root.post("create-queue", {**QUEUE, "name": name})
    world.set_rule("one", Rights.ALL, hub="from", key="its key")
    browser = signed_in(world, "one", "its key", entity="from")
    refused = browser.post("settings/from", {**QUEUE, "forward_to": "to"})
    assert refused.status == 403 and "Unauthorized access" in text_of(refused)
    assert root.post("settings/from", {**QUEUE, "forward_to": "to"}).status == 303
