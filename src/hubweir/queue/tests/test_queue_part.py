"""What an address names behind a queue, a topic or a subscription, in every form that clients write."""

from __future__ import annotations

import pytest

from hubweir.errors import ServiceError
from hubweir.namespace.address import Address, parse_address
from hubweir.namespace.entity import AnyEntity, Entity, EntityDescription, EntityStatus
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.queue.queue_part import QueuePart, parse_queue_part
from hubweir.queue.sub_queue import SubQueue

DESCRIPTIONS = (
    QueueDescription("q"), QueueDescription("a/b"), QueueDescription("txt/.-_123"), TopicDescription("Topic"),
    SubscriptionDescription("Topic/Subscriptions/Sub"), EventHubDescription("hub", 1),
)  # fmt: skip
ENTITIES = {fold(each.name): Entity(each.name, each, (), EntityStatus.ACTIVE) for each in DESCRIPTIONS}
MAIN, DEAD, TRANSFER = SubQueue.MAIN, SubQueue.DEAD_LETTERS, SubQueue.TRANSFER_DEAD_LETTERS


def find(name: str) -> AnyEntity | None:
    return ENTITIES.get(fold(name))


def resolve(text: str) -> tuple[EntityDescription, Address]:
    address = parse_address(text, find, host="ns.local")
    assert address.entity is not None
    return address.entity.description, address


@pytest.mark.parametrize(
    ("text", "name", "part"),
    [
        ("amqps://host:5671/q", "q", QueuePart(MAIN)),
        ("/q", "q", QueuePart(MAIN)),
        ("Q", "q", QueuePart(MAIN)),
        ("a%2Fb", "a/b", QueuePart(MAIN)),
        ("A/B/$DeadLetterQueue", "a/b", QueuePart(DEAD)),
        ("txt/.-_123", "txt/.-_123", QueuePart(MAIN)),
        ("q/$DeadLetterQueue", "q", QueuePart(DEAD)),
        ("q/$deadletterqueue", "q", QueuePart(DEAD)),
        ("q/%24DeadLetterQueue", "q", QueuePart(DEAD)),
        ("q/$Transfer/$DeadLetterQueue", "q", QueuePart(TRANSFER)),
        ("q/$TRANSFER/$deadletterqueue/$Management", "q", QueuePart(TRANSFER, True)),
        ("q/$management", "q", QueuePart(MAIN, True)),
        ("q/$DeadLetterQueue/$management", "q", QueuePart(DEAD, True)),
        ("topic", "Topic", QueuePart(MAIN)),
        ("topic/$management", "Topic", QueuePart(MAIN, True)),
        ("/topic/Subscriptions/sub", "Topic/Subscriptions/Sub", QueuePart(MAIN)),
        ("topic/subscriptions/sub", "Topic/Subscriptions/Sub", QueuePart(MAIN)),
        ("/TOPIC/SUBSCRIPTIONS/SUB", "Topic/Subscriptions/Sub", QueuePart(MAIN)),
        ("topic/Subscriptions/sub/$DeadLetterQueue", "Topic/Subscriptions/Sub", QueuePart(DEAD)),
        ("topic/Subscriptions/sub/$Transfer/$DeadLetterQueue", "Topic/Subscriptions/Sub", QueuePart(TRANSFER)),
        ("topic/Subscriptions/sub/$DeadLetterQueue/$management", "Topic/Subscriptions/Sub", QueuePart(DEAD, True)),
    ],
)
def test_an_address_names_an_entity_and_its_part(text: str, name: str, part: QueuePart) -> None:
    entity, address = resolve(text)
    assert (entity.name, parse_queue_part(entity, address.part)) == (name, part)


@pytest.mark.parametrize(
    "text",
    [
        *("q/$Transfer", "q/$DeadLetterQueue/$Transfer", "q/$DeadLetterQueue/$DeadLetterQueue", "q/DeadLetterQueue"),
        *("q/$management/$DeadLetterQueue", "q/$management/$management", "q/Partitions/0", "q/more", "q/$cbs"),
        *("topic/$DeadLetterQueue", "topic/$DeadLetterQueue/$management", "topic/Subscriptions"),
        *("topic/Subscriptions/missing", "topic/Subscriptions/missing/$DeadLetterQueue"),
        *("hub", "hub/$DeadLetterQueue", "hub/$management"),
    ],
)
def test_what_an_entity_does_not_have_is_none_of_its_parts(text: str) -> None:
    entity, address = resolve(text)
    assert parse_queue_part(entity, address.part) is None


@pytest.mark.parametrize("text", ["missing/$DeadLetterQueue", "a/$DeadLetterQueue", "txt", "missing/Subscriptions/Sub"])
def test_an_entity_that_is_not_there_has_no_parts(text: str) -> None:
    with pytest.raises(ServiceError, match="could not be found"):
        resolve(text)
