"""Topics: made and opened with their subscriptions, which come, change and go, with their rules.

A topic is named by its log id; what is sent to it are commands of fragment.py. A subscription lies in its topic's log:
commands that receive from it, of fragment.py, too, name it by its own id where a log id stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hubweir.broker.commands.command import CreateLog, LogCommand, command, in_namespace
from hubweir.broker.commands.process import Done
from hubweir.messaging_store.log import Durability
from hubweir.queue.fragment_settings import FragmentSettings


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """A subscription as the catalog has it. entity: its path, for people. rules: all of them (broker/rule_forms.py).

    subscription_id: of its fragment in this log of the topic.

    keeps_failed: messages that a rule cannot be asked about become dead letters of it.
    """

    subscription_id: str
    entity: str
    settings: FragmentSettings
    keeps_failed: bool
    rules: bytes


@command(50, Done)
class CreateTopic(CreateLog, frozen=True):
    """Make the log of a new topic; does nothing when it is there (creation is resumed after a crash).

    subscriptions: all that are served. Others that the log knows are gone, with all that they had. fragment_number: of
    the log among those of the topic; what is sent to it and copied in it has numbers of that fragment.
    """

    entity: str
    settings: FragmentSettings
    namespace: str = ""
    subscriptions: tuple[TopicSubscription, ...] = ()
    fragment_number: int = 0

    @property
    def name(self) -> str:
        return in_namespace(f"fragment {self.fragment_number} of topic {self.entity}", self.namespace)

    @property
    def log_durability(self) -> Durability:
        return self.settings.durability

    @property
    def inside(self) -> list[str]:
        return [each.subscription_id for each in self.subscriptions]


@command(51, Done)
class OpenTopic(CreateTopic, frozen=True):
    """Open the log of a topic that was made before; it is never made anew, whatever became of its files."""

    makes: ClassVar[bool] = False


@command(52, Done)
class PutSubscription(LogCommand, frozen=True):
    """Have a subscription as it is said here: a new one, or one that is there with other settings and rules.

    Answered when that is durable. A new one gets the messages that are sent from then on.
    """

    subscription: TopicSubscription


@command(53, Done)
class RemoveSubscription(LogCommand, frozen=True):
    """End a subscription, its receivers and its messages; does nothing when it is gone. Answered when it is durable."""

    subscription_id: str


@command(54, Done)
class PutSubscriptionRules(LogCommand, frozen=True):
    """Rules more, or others in the place of those of their names. They hold for the next message that is copied."""

    subscription_id: str
    rules: bytes


@command(55, Done)
class RemoveSubscriptionRule(LogCommand, frozen=True):
    """A rule less; does nothing when there is none of that name, in any case."""

    subscription_id: str
    name: str
