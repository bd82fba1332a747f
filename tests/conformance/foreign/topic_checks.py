"""What the programs in other languages check of topics and of administration, and the topics that they find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from azure.servicebus.management import SqlRuleFilter

from hubweir.testing.server_process import ServerProcess
from tests.conformance.foreign.checks import Check
from tests.conformance.foreign.queue_checks import administration


def _check(feature: str, *numbers: int) -> Check:
    return Check(feature, numbers, "sb")


TOPIC_CHECKS = {
    "subscriptions_get_what_their_rules_let_through": _check("topics", 105, 123),
    "subscriptions_settle_apart": _check("topics", 50, 51, 123),
    "dead_letters_of_a_subscription_say_why": _check("topics", 20, 53),
    "session_of_a_subscription_is_received_in_order": _check("topics", 79, 80),
    "scheduled_message_of_a_topic_comes_in_time": _check("topics", 92, 93),
    "topic_cannot_be_received_from": _check("errors", 24),
    "rules_come_and_go_over_amqp": _check("rules", 97, 98, 110),
    "namespace_tells_its_tier": _check("administration", 149),
    "topic_is_administered": _check("administration", 139, 142),
    "subscription_is_administered": _check("administration", 139, 142),
    "counts_of_a_subscription_are_told": _check("administration", 143),
    "rule_keeps_filter_action_and_parameters": _check("rules", 144),
    "first_rule_of_a_subscription_is_the_one_asked_for": _check("rules", 175),
    "lists_come_in_pages_in_order": _check("administration", 141),
    "administration_refusals_have_codes": _check("administration", 140, 145),
}


@dataclass(frozen=True, slots=True)
class Subscription:
    """sql: of its only rule; without it every message comes."""

    sql: str = ""
    requires_session: bool = False


# A topic for each check, with its subscriptions by name.
TOPICS: Mapping[str, Mapping[str, Subscription]] = {
    "news": {"all": Subscription(), "red": Subscription(sql="color = 'red' AND size > 1")},
    "settled-news": {"left": Subscription(), "right": Subscription()},
    "dead-news": {"a": Subscription(), "b": Subscription()},
    "session-news": {"a": Subscription(requires_session=True)},
    "scheduled-news": {"a": Subscription()},
    "ruled-news": {"a": Subscription()},
}


def create_topics(server: ServerProcess, data: Path) -> None:
    """Make all of them by the official administration client. data: the server's folder."""
    with administration(server, data) as client:
        for topic, subscriptions in TOPICS.items():
            client.create_topic(topic)
            for name, each in subscriptions.items():
                client.create_subscription(topic, name, requires_session=each.requires_session)
                if each.sql:
                    client.create_rule(topic, name, "sql", filter=SqlRuleFilter(each.sql))
                    client.delete_rule(topic, name, "$Default")
