"""Two people at the settings of one thing: what one of them did not touch stays as the other one set it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from hubweir.errors import ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability, EntityDescription
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import DAY_MS, HOUR_MS, written_duration
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.entered_values import entered_values
from hubweir.portal.tests.browser import Browser, fields_of, signed_in, text_of

NOTE = "two\nlines & more"


@pytest.fixture
def world() -> World:
    world = World(hubs={"orders": 2})
    world.create(QueueDescription("kitchen", DeliverySettings(dead_letters_on_expiration=True), user_metadata=NOTE))
    world.create(TopicDescription("news"))
    world.create(SubscriptionDescription("news/Subscriptions/all"))
    return world


@pytest.fixture
def ada(world: World) -> Browser:
    return signed_in(world)


@pytest.fixture
def bob(world: World, ada: Browser) -> Browser:
    browser = Browser(world, portal=ada.portal)
    browser.follow(browser.sign_in())
    return browser


def opened(browser: Browser, page: str) -> dict[str, str]:
    return fields_of(browser.get(page))


def save(browser: Browser, page: str, fields: dict[str, str], **touched: str) -> None:
    browser.follow(browser.post(page, {**fields, **touched}))


def messaging(world: World, name: str) -> MessagingDescription:
    return world.namespace.get(name, MessagingDescription).description


@pytest.mark.parametrize("name", ["orders", "kitchen", "news", "news/Subscriptions/all"])
def test_a_page_that_nobody_touched_changes_nothing(world: World, ada: Browser, name: str) -> None:
    before = world.namespace.get(name, EntityDescription).description
    save(ada, f"settings/{name}", opened(ada, f"settings/{name}"))
    after = world.namespace.get(name, EntityDescription).description
    assert after == replace(before, changed_at_ms=after.changed_at_ms)


def test_two_people_change_two_settings_of_a_hub(world: World, ada: Browser, bob: Browser) -> None:
    hers, his = opened(ada, "settings/orders"), opened(bob, "settings/orders")
    save(ada, "settings/orders", hers, retention="36 hours", user_metadata="hers")
    save(bob, "settings/orders", his, durability="relaxed", status="SendDisabled")
    hub = world.gateway.management.hub("orders")
    assert (hub.retention_ms, hub.user_metadata) == (36 * HOUR_MS, "hers")
    assert (hub.durability, hub.availability) == (Durability.RELAXED, Availability.SEND_DISABLED)


def test_two_people_change_two_settings_of_a_queue_boxes_among_them(world: World, ada: Browser, bob: Browser) -> None:
    hers, his = opened(ada, "settings/kitchen"), opened(bob, "settings/kitchen")
    assert his.pop("dead_letters_on_expiration") == "on"  # a box is sent by its tick alone
    save(ada, "settings/kitchen", hers, max_size="2048", lock_duration="30 s", forward_to="news")
    save(bob, "settings/kitchen", his, max_delivery_count="4", duplicate_window="5 minutes")
    queue = world.namespace.get("kitchen", QueueDescription).description
    assert (queue.storage.max_size_megabytes, queue.delivery.forward_to) == (2_048, "news")
    assert queue.delivery.lock_duration.ms == 30_000
    assert (queue.delivery.max_delivery_count, queue.storage.duplicate_window.ms) == (4, 300_000)
    assert not queue.delivery.dead_letters_on_expiration
    assert queue.user_metadata == NOTE, "browsers write the ends of lines in their own way, which touches nothing"


@pytest.mark.parametrize("name", ["news", "news/Subscriptions/all"])
def test_two_people_change_two_settings_of_a_topic_or_a_subscription(
    world: World, ada: Browser, bob: Browser, name: str
) -> None:
    hers, his = opened(ada, f"settings/{name}"), opened(bob, f"settings/{name}")
    save(ada, f"settings/{name}", hers, time_to_live="2 days")
    save(bob, f"settings/{name}", his, user_metadata="his")
    assert (messaging(world, name).default_time_to_live.ms, messaging(world, name).user_metadata) == (2 * DAY_MS, "his")


def test_two_people_change_two_settings_of_capture(world: World, ada: Browser, bob: Browser) -> None:
    world.create(EventHubDescription("bills", 1, capture=CaptureDescription(interval_s=90)))
    hers, his = opened(ada, "capture/bills"), opened(bob, "capture/bills")
    save(ada, "capture/bills", hers, minutes="2")
    save(bob, "capture/bills", his, skip_empty="on")
    assert world.gateway.management.hub("bills").capture == CaptureDescription(interval_s=120, skip_empty_archives=True)


def test_a_maximum_is_changed_and_units_that_were_added_meanwhile_stay(
    world: World, ada: Browser, bob: Browser
) -> None:
    save(ada, "scale", {}, units="1", inflates="on", maximum="6")
    hers, his = opened(ada, "scale"), opened(bob, "scale")
    save(ada, "scale", hers, units="3")
    save(bob, "scale", his, maximum="8")
    units = world.namespace.description.units
    assert (units.held, units.maximum) == (3, 8)


@pytest.mark.parametrize(
    ("page", "touched"),
    [("settings/orders", {"retention": "2 days"}), ("capture/orders", {"minutes": "2"}),
     ("settings/kitchen", {"lock_duration": "30 s"})],
)  # fmt: skip
def test_a_change_that_comes_before_the_catalog_s_turn_is_not_undone(
    world: World, ada: Browser, page: str, touched: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may be faster to the keeper than this page, whose catalog does not have its change yet."""
    name, fields = page.partition("/")[2], opened(ada, page)
    keeper = world.gateway.keeper
    change = keeper.change

    def later(of: str, kind: Any, its: Any, on_done: Any) -> None:
        change(of, kind, lambda known, _: replace(known, user_metadata="faster"), lambda _: None)
        change(of, kind, its, on_done)

    monkeypatch.setattr(keeper, "change", later)
    ada.post(page, {**fields, **touched})
    assert world.namespace.get(name, EntityDescription).description.user_metadata == "faster"


def test_of_two_people_at_one_setting_the_later_one_has_it(world: World, ada: Browser, bob: Browser) -> None:
    hers, his = opened(ada, "settings/kitchen"), opened(bob, "settings/kitchen")
    save(ada, "settings/kitchen", hers, max_delivery_count="4", lock_duration="30 s")
    save(bob, "settings/kitchen", his, max_delivery_count="6")
    delivery = world.namespace.get("kitchen", QueueDescription).description.delivery
    assert (delivery.max_delivery_count, delivery.lock_duration) == (6, written_duration("PT30S"))


@pytest.mark.parametrize(("page", "touched", "corrected"), [
    ("settings/orders", {"retention": "soon", "durability": "relaxed"}, {"retention": "2 days"}),
    ("capture/orders", {"minutes": "99", "megabytes": "20"}, {"minutes": "9"}),
])  # fmt: skip
def test_a_page_that_tells_a_mistake_shows_what_the_other_one_set_and_undoes_nothing(
    world: World, ada: Browser, bob: Browser, page: str, touched: dict[str, str], corrected: dict[str, str]
) -> None:
    hers, his = opened(ada, page), opened(bob, page)
    other = {"user_metadata": "hers"} if page.startswith("settings") else {"container": "hers"}
    ada.post(page, {**hers, **other})
    refused = bob.post(page, {**his, **touched})
    assert refused.status == 400
    again = fields_of(refused)
    assert {**other, **touched}.items() <= again.items(), text_of(refused)
    assert page.startswith("capture") or '<p class="fixed">2</p>' in refused.text, "what never changes is told, too"
    bob.post(page, {**again, **corrected})
    hub = world.gateway.management.hub("orders")
    if page.startswith("settings"):
        assert (hub.user_metadata, hub.retention_ms, hub.durability) == ("hers", 2 * DAY_MS, Durability.RELAXED)
    else:
        assert hub.capture == CaptureDescription(container="hers", interval_s=540, size_limit_bytes=20 * 1_024 * 1_024)


def test_what_was_touched_is_told_from_what_was_shown() -> None:
    now = {"a": "theirs", "b": "1", "box": "on", "fixed": "7"}
    seen = urlencode({"a": "mine", "b": "1", "box": "on", "fixed": "7"})
    assert entered_values({"a": "mine", "b": "1", "box": "on", "seen": seen}, now) == {**now, "fixed": ""}
    entered = entered_values({"a": " mine\r\n", "b": "2", "seen": seen}, now, fixed=["fixed"])
    assert entered == {"a": "theirs", "b": "2", "box": "", "fixed": "7"}
    assert entered_values({"a": "mine"}, now, fixed=["fixed"]) == {"a": "mine", "b": "", "box": "", "fixed": "7"}
    more_spaces = entered_values({"a": "two  words", "seen": urlencode({"a": "two words"})}, {"a": "x"})
    assert more_spaces == {"a": "two  words"}, "spaces within count"


def test_what_is_no_form_is_refused(ada: Browser) -> None:
    for seen in ("a=%FF", "a=1&a=2", "ä=1"):
        with pytest.raises(ServiceError, match="cannot be read"):
            entered_values({"seen": seen}, {"a": ""})
        assert ada.post("settings/orders", {**opened(ada, "settings/orders"), "seen": seen}).status == 400
