"""Two changes made from the same look: each setting is as whoever changed it wants it, and nothing is undone."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from typing import Any

from msgspec.structs import replace

from hubweir.namespace.asked_settings import asked_settings
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.tiers import PROFILES
from hubweir.namespace.topic_description import TopicDescription

CONTEXT = ChangeContext(PROFILES["standard"], "ns.local", 32, "", 77)
SEEN = QueueDescription(
    "q", DeliverySettings(max_delivery_count=3), StorageSettings(max_size_megabytes=2_048), user_metadata="old"
)


def delivery(of: QueueDescription, **changed: Any) -> QueueDescription:
    return replace(of, delivery=replace_fields(of.delivery, **changed))


def storage(of: QueueDescription, **changed: Any) -> QueueDescription:
    return replace(of, storage=replace_fields(of.storage, **changed))


THEIRS = storage(
    delivery(replace(SEEN, user_metadata="theirs"), max_delivery_count=7, forward_to="other"),
    duplicate_window=written_duration("PT5M"),
)


def test_what_is_as_it_was_seen_stays_as_the_other_one_set_it() -> None:
    assert asked_settings(THEIRS, SEEN, SEEN) == THEIRS
    lock = written_duration("PT13S")
    assert asked_settings(THEIRS, delivery(SEEN, lock_duration=lock), SEEN) == delivery(THEIRS, lock_duration=lock)
    larger = storage(SEEN, max_size_megabytes=4_096)
    assert asked_settings(THEIRS, larger, SEEN) == storage(THEIRS, max_size_megabytes=4_096)
    disabled = replace(SEEN, availability=Availability.DISABLED)
    assert asked_settings(THEIRS, disabled, SEEN) == replace(THEIRS, availability=Availability.DISABLED)


def test_of_two_changes_of_one_setting_the_later_holds_and_takes_nothing_else_with_it() -> None:
    assert asked_settings(THEIRS, replace(SEEN, user_metadata=""), SEEN) == replace(THEIRS, user_metadata="")
    assert asked_settings(THEIRS, delivery(SEEN, max_delivery_count=9), SEEN) == delivery(THEIRS, max_delivery_count=9)


def test_settings_of_capture_are_settings_each() -> None:
    seen = EventHubDescription("h", 1, capture=CaptureDescription(enabled=True))
    by_now = replace(seen, capture=CaptureDescription(enabled=True, interval_s=60, container="c"))
    wanted = replace(seen, capture=CaptureDescription(enabled=False))
    expected = CaptureDescription(enabled=False, interval_s=60, container="c")
    assert asked_settings(by_now, wanted, seen).capture == expected
    without = replace(seen, capture=None)
    assert asked_settings(by_now, wanted, without).capture == wanted.capture, "the later of two that began it"
    assert asked_settings(by_now, without, without).capture == by_now.capture


def test_who_says_nothing_of_what_was_seen_asks_for_the_whole() -> None:
    assert asked_settings(THEIRS, SEEN, None) is SEEN


def test_a_change_sets_what_differs_from_what_was_seen_and_is_judged_by_that() -> None:
    again = delivery(
        THEIRS, requires_session=True, forward_to=""
    )  # it was deleted, and made anew, since somebody looked
    changed = replace_settings(again, CONTEXT, replace(SEEN, availability=Availability.DISABLED), seen=SEEN)
    assert changed == replace(again, availability=Availability.DISABLED, changed_at_ms=77)
    topic = TopicDescription("t", user_metadata="theirs")
    wanted = TopicDescription("t", StorageSettings(max_size_megabytes=2_048))
    merged = replace_settings(topic, CONTEXT, wanted, seen=TopicDescription("t"))
    assert (merged.user_metadata, merged.storage.max_size_megabytes) == ("theirs", 2_048)
    known = SubscriptionDescription("t/Subscriptions/s", DeliverySettings(max_delivery_count=3))
    seen = SubscriptionDescription("t/Subscriptions/s")
    kept = replace_settings(known, CONTEXT, replace(seen, dead_letters_on_filter_errors=False), seen=seen)
    assert (kept.delivery.max_delivery_count, kept.dead_letters_on_filter_errors) == (3, False)
