"""A copy of a catalog goes the way of the writer's, and tells whoever reads it what the writer tells."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.errors import ENTITY_EXISTS, CorruptStore, NewerFormat, ServiceError
from hubweir.namespace.event_hub_changes import add_group
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.followed_catalog import FollowedCatalog
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription
from hubweir.namespace.tests.conftest import Process
from hubweir.namespace.tiers import DEVELOPMENT
from hubweir.namespace.topic_description import TopicDescription
from hubweir.testing.simulated_env import SimulatedEnv

TEA = "news/Subscriptions/tea"
MORNING = SubscriptionRuleDescription("morning")


def key(secret: str) -> AuthorizationRuleDescription:
    return AuthorizationRuleDescription("sender", Rights.SEND, Secret(secret), Secret(""))


class Copied:
    """A writer, and a copy that follows it. told: the newest name at each change. missed: while the copy is away."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(7)
        self.process = Process(self.env)
        self.writer = self.process.writer
        self.copy = FollowedCatalog(profile=DEVELOPMENT, host="ns.local")
        self.told: list[str] = []
        self.removed: list[str] = []
        self.operations: list[tuple[int, bytes]] = []
        self.is_away = False
        self.copy.namespace.on_change(lambda: self.told.append(self.copy.namespace.newest))
        self.copy.on_removed = lambda entity: self.removed.append(entity.name)
        self.follow()

    def follow(self) -> None:
        """Take the whole anew."""
        version, snapshot = self.writer.snapshot()
        self.copy.restore(snapshot)
        self.writer.followers.came(1, version, self._tell, lambda: None)
        self.writer.followers.applied(1, version)
        self.is_away = False

    def _tell(self, version: int, operation: bytes) -> None:
        self.operations.append((version, operation))
        if not self.is_away:
            self.copy.apply(version, operation)
        self.writer.followers.applied(1, version)

    def is_equal(self) -> bool:
        """Whether the copy is what the writer has, to the byte."""
        return self.writer.snapshot() == (self.copy.version, self.copy._catalog.snapshot())

    def take_told(self) -> tuple[list[str], list[str]]:
        """What was told of changes and of removals since the last call."""
        told, removed = list(self.told), list(self.removed)
        self.told.clear()
        self.removed.clear()
        return told, removed


@pytest.fixture
def copied() -> Copied:
    return Copied()


def set_key(copied: Copied, name: str | None, secret: str) -> None:
    copied.process.ask(lambda done: copied.writer.change_rules(name, lambda level: level.set(key(secret)), done))


def test_a_copy_has_what_the_writer_has_after_each_operation_of_every_kind(copied: Copied) -> None:
    process, writer = copied.process, copied.writer
    steps: list[Any] = [
        lambda: process.ask(lambda done: writer.describe(lambda known: replace_fields(known, name="shop"), done)),
        lambda: set_key(copied, None, "a"),
        lambda: process.create("hub"),
        lambda: process.make(TopicDescription("news")),
        lambda: process.make(SubscriptionDescription(TEA)),
        lambda: process.put_rule(TEA, MORNING),
        lambda: set_key(copied, "hub", "b"),
        lambda: process.remove_rule(TEA, "morning"),
        lambda: process.ask(lambda done: writer.record_usage([(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)], 0, done)),
        lambda: process.remove("hub", EventHubDescription),
        lambda: process.remove("news", TopicDescription),
    ]
    for step in steps:
        step()
        assert copied.is_equal()
    assert copied.copy.namespace.entities(EventHubDescription) == ()


def test_whoever_reads_the_copy_is_told_of_each_change_and_finds_it_made(copied: Copied) -> None:
    seen: list[tuple[str, bool]] = []
    namespace = copied.copy.namespace
    namespace.on_change(lambda: seen.append((namespace.newest, namespace.find_any("orders") is not None)))
    copied.process.make(QueueDescription("orders"))
    assert seen == [("orders", False), ("orders", True)]  # it is served with its commit
    set_key(copied, None, "a")
    assert seen[-1] == ("", True)


def test_rules_of_subscriptions_change_without_a_word_as_at_the_writer(copied: Copied) -> None:
    copied.process.make(TopicDescription("news"))
    copied.process.make(SubscriptionDescription(TEA))
    copied.take_told()
    copied.process.put_rule(TEA, MORNING)
    assert copied.take_told() == ([], [])
    assert copied.copy.namespace.subscription_rule(TEA, "morning").name == "morning"
    copied.process.remove_rule(TEA, "morning")
    assert copied.take_told() == ([], [])
    with pytest.raises(ServiceError):
        copied.copy.namespace.subscription_rule(TEA, "morning")


def test_what_is_gone_is_told_before_it_is_gone_with_all_that_was_inside_it(copied: Copied) -> None:
    copied.process.make(TopicDescription("news"))
    copied.process.make(SubscriptionDescription(TEA))
    copied.take_told()
    found: list[bool] = []
    copied.copy.on_removed = lambda entity: (  # type: ignore[assignment, return-value]
        copied.removed.append(entity.name),
        found.append(copied.copy._catalog.get(entity.entity_id) is not None),
    )
    copied.process.remove("news", TopicDescription)
    told, removed = copied.take_told()
    assert (told, removed, found) == (["news", "news"], [TEA, "news"], [True, True])


def test_a_copy_that_missed_changes_is_told_all_that_differs_and_nothing_else(copied: Copied) -> None:
    process = copied.process
    for name in ("kept", "changed", "gone", "made-anew"):
        process.create(name)
    process.make(TopicDescription("news"))
    process.make(SubscriptionDescription(TEA))
    copied.take_told()
    copied.is_away = True
    set_key(copied, "changed", "other")
    process.remove("gone", EventHubDescription)
    process.remove("made-anew", EventHubDescription)
    process.make(QueueDescription("made-anew"))
    process.make(QueueDescription("new"))
    process.put_rule(TEA, MORNING)
    assert copied.take_told() == ([], [])
    before = copied.copy.namespace
    copied.follow()
    told, removed = copied.take_told()
    assert told[0] == "" and sorted(told[1:]) == ["changed", "gone", "made-anew", "new"]
    assert removed == ["gone", "made-anew"]
    assert copied.is_equal() and copied.copy.namespace is before
    assert before.get("made-anew", QueueDescription).is_served
    assert before.subscription_rule(TEA, "morning") == before.subscription_rules(TEA).find("morning")
    set_key(copied, "kept", "after")
    assert copied.take_told() == (["kept"], []) and copied.is_equal()


def test_a_copy_that_missed_nothing_tells_nothing(copied: Copied) -> None:
    copied.process.create("hub")
    copied.take_told()
    copied.is_away = True
    copied.follow()
    assert copied.take_told() == ([], [])
    copied.process.create("other")
    assert copied.is_equal()


def test_a_key_alone_that_is_another_is_told(copied: Copied) -> None:
    copied.process.create("hub")
    set_key(copied, "hub", "first")
    copied.take_told()
    copied.is_away = True
    set_key(copied, "hub", "second")
    copied.follow()
    assert copied.take_told() == (["", "hub"], [])
    (rule,) = copied.copy.namespace.rule_level("hub").rules
    assert rule.primary.reveal() == "second"


@pytest.mark.parametrize("skipped", [-1, 1])
def test_an_operation_that_is_not_the_next_one_is_refused(copied: Copied, skipped: int) -> None:
    copied.process.create("hub")
    version, operation = copied.operations[-1]
    before = copied.copy._catalog.snapshot()
    with pytest.raises(CorruptStore, match=f"version {version} and is told"):
        copied.copy.apply(version + 1 + skipped, operation)
    assert copied.copy._catalog.snapshot() == before


def test_bytes_that_are_no_operation_or_no_catalog_are_refused_and_change_nothing(copied: Copied) -> None:
    copied.process.create("hub")
    before, _ = copied.copy._catalog.snapshot(), copied.take_told()
    for data, error in ((b"", CorruptStore), (b"\x03rubbish", CorruptStore), (b"\xff", NewerFormat)):
        with pytest.raises(error):
            copied.copy.apply(copied.copy.version + 1, data)
        with pytest.raises(error):
            copied.copy.restore(data)
    assert copied.copy._catalog.snapshot() == before and copied.take_told() == ([], [])


def test_a_snapshot_behind_many_changes_is_one_step(copied: Copied) -> None:
    copied.is_away = True
    for number in range(100):
        copied.process.begin(f"hub-{number}")
    copied.follow()
    assert copied.is_equal() and len(copied.copy.namespace.unfinished()) == 100


def test_a_change_is_answered_when_the_copy_has_it(copied: Copied) -> None:
    held: list[int] = []
    copied.writer.followers.came(2, copied.copy.version, lambda version, _: held.append(version), lambda: None)
    copied.writer.followers.applied(2, copied.copy.version)
    answers: list[object] = []
    hub = EventHubDescription("hub", 2)
    copied.writer.begin_create(hub, [0], answers.append)
    copied.env.run_for(1_000)
    assert held == [1] and answers == []
    copied.writer.begin_create(replace(hub, name="other"), [0], answers.append)
    copied.env.run_for(500)
    assert held == [1, 2] and answers == []  # the second was written meanwhile: none waits for the answer of another
    copied.writer.followers.applied(2, 2)
    assert [answer.name for answer in answers] == ["hub", "other"]  # type: ignore[attr-defined]


def test_a_refusal_is_told_when_every_copy_has_what_it_was_judged_against(copied: Copied) -> None:
    """So whoever hears that there is a group already finds it, in whichever process it looks."""
    copied.process.create("hub")
    copied.writer.followers.came(2, copied.copy.version, lambda version, _: None, lambda: None)
    copied.writer.followers.applied(2, copied.copy.version)
    answers: list[object] = []
    for _ in range(2):
        copied.writer.change("hub", EventHubDescription, partial(add_group, name="g"), answers.append)
    copied.env.run_for(1_000)
    assert answers == []
    copied.writer.followers.applied(2, copied.copy.version)
    copied.env.run_for(0)
    made, refused = answers
    assert not isinstance(made, ServiceError)
    assert isinstance(refused, ServiceError) and refused.condition is ENTITY_EXISTS
