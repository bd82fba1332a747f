"""The kinds of entities that a catalog may hold. A new kind gets its line here; docs/extending.md says what else."""

from __future__ import annotations

from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

# Of one entity, told apart by its tag.
Description = EventHubDescription | QueueDescription | TopicDescription | SubscriptionDescription
