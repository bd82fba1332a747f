"""A new description in the place of an old one: what may change, what stays, what is refused."""

from __future__ import annotations

from dataclasses import replace as replace_fields

import pytest
from msgspec.structs import replace

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.messaging_changes import partitioned_as, replace_settings
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription
from hubweir.namespace.tiers import PROFILES
from hubweir.namespace.topic_description import TopicDescription

CONTEXT = ChangeContext(PROFILES["standard"], "ns.local", 32, "", 77)
RULE = AuthorizationRuleDescription("r", Rights.SEND, Secret("one"), Secret(""))


def test_an_update_replaces_all_settings_and_keeps_what_is_none() -> None:
    known = QueueDescription(
        "Orders", DeliverySettings(max_delivery_count=3), created_at_ms=5, user_metadata="old", rules=(RULE,)
    )
    wanted = QueueDescription(
        "orders", DeliverySettings(lock_duration=written_duration("PT13S")), availability=Availability.DISABLED
    )
    changed = replace_settings(known, CONTEXT, wanted)
    assert changed == replace(wanted, name="Orders", created_at_ms=5, changed_at_ms=77, rules=(RULE,))
    assert changed.delivery.max_delivery_count == 10, "what is not asked for is the default again"


def test_rules_are_replaced_when_there_are_others_and_go_when_there_are_none() -> None:
    known, other = QueueDescription("q", rules=(RULE,)), replace_fields(RULE, name="other")
    assert replace_settings(known, CONTEXT, QueueDescription("q"), rules=(other,)).rules == (other,)
    assert replace_settings(known, CONTEXT, QueueDescription("q"), rules=()).rules == ()


def test_a_subscription_keeps_its_first_rule() -> None:
    known = SubscriptionDescription("t/Subscriptions/s", first_rule=SubscriptionRuleDescription("mine"))
    assert replace_settings(known, CONTEXT, SubscriptionDescription("t/Subscriptions/s")).first_rule.name == "mine"


def test_a_partitioned_queue_takes_back_the_size_that_it_tells() -> None:
    known = QueueDescription("q", storage=StorageSettings(max_size_megabytes=4_096, is_partitioned=True))
    wanted = replace(known, storage=replace_fields(known.storage, max_size_megabytes=65_536))
    assert replace_settings(known, CONTEXT, wanted).storage == known.storage
    smaller = replace(known, storage=replace_fields(known.storage, max_size_megabytes=2_048))
    assert replace_settings(known, CONTEXT, smaller).storage.max_size_megabytes == 2_048


SESSIONS = DeliverySettings(requires_session=True)
PARTITIONED, DETECTING = StorageSettings(is_partitioned=True), StorageSettings(requires_duplicate_detection=True)


@pytest.mark.parametrize(
    ("known", "wanted", "needle"),
    [
        (QueueDescription("q"), QueueDescription("q", SESSIONS),
         "The value for the RequiresSession property of an existing Queue cannot be changed"),
        (SubscriptionDescription("t/Subscriptions/s", SESSIONS), SubscriptionDescription("t/Subscriptions/s"),
         "The value for the RequiresSession property of an existing Subscription cannot be changed"),
        (QueueDescription("q"), QueueDescription("q", storage=DETECTING),
         "The value for the RequiresDuplicateDetection property of an existing Queue cannot be changed"),
        (TopicDescription("t", PARTITIONED), TopicDescription("t"), "Partitioning cannot be changed for Topic. "),
        (QueueDescription("q"), QueueDescription("q", storage=PARTITIONED), "Partitioning cannot be changed for Queue"),
    ],
)  # fmt: skip
def test_what_only_a_new_entity_may_be_given_does_not_change(
    known: MessagingDescription, wanted: MessagingDescription, needle: str
) -> None:
    with pytest.raises(ServiceError) as refused:
        replace_settings(known, CONTEXT, wanted)
    assert refused.value.condition is ARGUMENT_ERROR and needle in refused.value.text


@pytest.mark.parametrize(("known", "wanted"), [(True, False), (False, True)])
def test_in_the_premium_tier_a_wish_for_other_partitioning_is_refused_too(known: bool, wanted: bool) -> None:
    context = replace_fields(CONTEXT, profile=PROFILES["premium"])
    topics = [TopicDescription("t", StorageSettings(is_partitioned=each)) for each in (known, wanted)]
    with pytest.raises(ServiceError) as refused:
        replace_settings(topics[0], context, topics[1])
    assert refused.value.condition is ARGUMENT_ERROR
    assert refused.value.text == "Partitioning cannot be changed for Topic. The premium tier decides it."
    assert replace_settings(topics[0], context, partitioned_as(topics[0], topics[1])).storage == topics[0].storage


@pytest.mark.parametrize("is_partitioned", [True, False])
def test_who_says_nothing_of_partitioning_gets_what_there_is(is_partitioned: bool) -> None:
    storage = StorageSettings(is_partitioned=is_partitioned)
    known, wanted = QueueDescription("q", storage=storage), QueueDescription("q", user_metadata="x")
    assert partitioned_as(known, wanted) == replace(wanted, storage=storage)
    assert partitioned_as(None, QueueDescription("q", storage=storage)) == QueueDescription("q")
    subscription = SubscriptionDescription("t/Subscriptions/s")
    assert partitioned_as(subscription, subscription) is subscription


def test_a_change_is_held_to_the_ranges() -> None:
    with pytest.raises(ServiceError) as refused:
        replace_settings(QueueDescription("q"), CONTEXT, QueueDescription("q", DeliverySettings(max_delivery_count=0)))
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
