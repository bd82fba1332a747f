"""Quotas of queues, topics and subscriptions by profile, as one table. (Service Bus quotas; premium and standard tiers)

None: no quota. The profile `development` has none but the size of a message.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import RESOURCE_LIMIT, ServiceError
from hubweir.namespace.iso_duration import SECOND_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagingTier:
    """One row of the table. sku: as namespaces tell it. message_kilobytes: the largest message unless the entity says.

    message_kilobytes_min, message_kilobytes_limit: what an entity may say; None: it may not.
    """

    profile: str
    sku: str
    message_kilobytes: int
    message_kilobytes_min: int = 1_024
    message_kilobytes_limit: int | None = None
    has_large_sizes: bool = False  # of queues and topics, over 5 GB
    duplicate_window_min_ms: int = 20 * SECOND_MS
    entities: int | None = None  # queues and topics together
    partitioned_entities: int | None = None
    subscriptions: int | None = None  # of one topic
    sql_rules: int | None = None  # of one topic, with those that match everything or nothing
    correlation_rules: int | None = None  # of one topic
    has_topics: bool = True  # and sessions, duplicate detection, forwarding

    @property
    def is_premium(self) -> bool:
        return self.sku == PREMIUM_SKU

    @property
    def fragments(self) -> int:
        """Of a partitioned queue or topic."""
        return PREMIUM_FRAGMENTS if self.is_premium else STANDARD_FRAGMENTS

    def check_entity_count(self, count: int) -> None:
        """Raise RESOURCE_LIMIT when a namespace may not have this many queues and topics."""
        self._check(count, self.entities, "The namespace would have {} queues and topics", "Delete one")

    def check_partitioned_count(self, count: int) -> None:
        """Raise RESOURCE_LIMIT when a namespace may not have this many partitioned queues and topics."""
        what = "The namespace would have {} partitioned queues and topics"
        self._check(count, self.partitioned_entities, what, "Make it without partitioning")

    def check_subscription_count(self, topic: str, count: int) -> None:
        """Raise RESOURCE_LIMIT when a topic may not have this many subscriptions."""
        self._check(count, self.subscriptions, f"Topic '{topic}' would have {{}} subscriptions", "Delete one")

    def check_rule_counts(self, topic: str, sql: int, correlation: int) -> None:
        """Raise RESOURCE_LIMIT when a topic may not have this many rules of either sort."""
        self._check(sql, self.sql_rules, f"Topic '{topic}' would have {{}} SQL filters", "Delete one")
        what = f"Topic '{topic}' would have {{}} correlation filters"
        self._check(correlation, self.correlation_rules, what, "Delete one")

    def check_feature(self, title: str, feature: str, is_wanted: bool) -> None:
        """Raise RESOURCE_LIMIT for what only the other tiers have. title: of the entity."""
        if is_wanted and not self.has_topics:
            text = f"{title}: profile '{self.profile}' has no {feature}. {_OTHER_PROFILE}"
            raise ServiceError(RESOURCE_LIMIT, text)

    def _check(self, count: int, quota: int | None, what: str, way_out: str) -> None:
        if quota is not None and count > quota:
            text = (
                f"{what.format(count)}; the quota of profile '{self.profile}' is {quota}. {way_out}. {_OTHER_PROFILE}"
            )
            raise ServiceError(RESOURCE_LIMIT, text)


PREMIUM_SKU = "Premium"
# A partitioned entity of the standard tier has so many fragments, each with room for its whole size; one of the premium
# tier, where all are, divides its size among these.
STANDARD_FRAGMENTS, PREMIUM_FRAGMENTS = 16, 2
_OTHER_PROFILE = "Or serve the namespace under another profile (serve --profile, Sku in a Config.json)."
_SUBSCRIPTIONS, _SQL_RULES, _CORRELATION_RULES = 2_000, 2_000, 100_000
_PREMIUM_KILOBYTES = 102_400

MESSAGING_TIERS = {
    tier.profile: tier
    for tier in (
        MessagingTier(
            profile="development", sku="Standard", message_kilobytes=1_024, message_kilobytes_min=1,
            message_kilobytes_limit=_PREMIUM_KILOBYTES, has_large_sizes=True, duplicate_window_min_ms=5 * SECOND_MS,
        ),
        MessagingTier(
            profile="official-emulator", sku="Standard", message_kilobytes=256, entities=50, subscriptions=50,
            duplicate_window_min_ms=5 * SECOND_MS,
        ),
        MessagingTier(
            profile="basic", sku="Basic", message_kilobytes=256, entities=10_000, partitioned_entities=100,
            has_topics=False,
        ),
        MessagingTier(
            profile="standard", sku="Standard", message_kilobytes=256, entities=10_000, partitioned_entities=100,
            subscriptions=_SUBSCRIPTIONS, sql_rules=_SQL_RULES, correlation_rules=_CORRELATION_RULES,
        ),
        MessagingTier(
            profile="premium", sku=PREMIUM_SKU, message_kilobytes=1_024, message_kilobytes_limit=_PREMIUM_KILOBYTES,
            has_large_sizes=True, entities=1_000, subscriptions=_SUBSCRIPTIONS, sql_rules=_SQL_RULES,
            correlation_rules=_CORRELATION_RULES,
        ),
    )
}  # fmt: skip
