"""Settings of what a queue or a topic takes in: size, largest message, detection of duplicates, number of fragments."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.entity import check_span, out_of_range
from hubweir.namespace.iso_duration import DAY_MS, MINUTE_MS, WrittenDuration
from hubweir.namespace.messaging_tier import STANDARD_FRAGMENTS, MessagingTier

STANDARD_SIZES = (1_024, 2_048, 3_072, 4_096, 5_120)
PREMIUM_SIZES = (*STANDARD_SIZES, 10_240, 20_480, 40_960, 81_920)
WINDOW_LIMIT_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Kept in the catalog. requires_duplicate_detection and is_partitioned never change.

    max_size_megabytes: of one fragment's share, as it was asked for. max_message_kilobytes 0: the tier's default.
    """

    max_size_megabytes: int = 1_024
    requires_duplicate_detection: bool = False
    duplicate_window: WrittenDuration = WrittenDuration(10 * MINUTE_MS, "PT10M")
    is_partitioned: bool = False
    is_express: bool = False
    support_ordering: bool = True
    max_message_kilobytes: int = 0

    def size_in_megabytes(self, tier: MessagingTier) -> int:
        """The whole size, as descriptions tell it."""
        is_multiplied = self.is_partitioned and not tier.is_premium
        return self.max_size_megabytes * (STANDARD_FRAGMENTS if is_multiplied else 1)

    def fragment_count(self, tier: MessagingTier) -> int:
        """In how many fragments a new entity lies; one that is there has as many as it was made with."""
        return tier.fragments if self.is_partitioned else 1

    def message_kilobytes(self, tier: MessagingTier) -> int:
        """The largest message that is taken."""
        return self.max_message_kilobytes or tier.message_kilobytes


def new_storage(storage: StorageSettings, tier: MessagingTier) -> StorageSettings:
    """The settings of an entity that is to be made: what the tier decides is as it decides."""
    return replace(storage, is_partitioned=True) if tier.is_premium else storage


def checked_storage(title: str, storage: StorageSettings, tier: MessagingTier) -> StorageSettings:
    """The settings as they are kept, when they are in range. Raises ServiceError. title: of the entity."""
    window = storage.duplicate_window
    least_ms = tier.duplicate_window_min_ms
    check_span(title, "DuplicateDetectionHistoryTimeWindow", window, least_ms=least_ms, most_ms=WINDOW_LIMIT_MS)
    tier.check_feature(title, "duplicate detection", storage.requires_duplicate_detection)
    if storage.is_express and tier.is_premium:
        raise ServiceError(ARGUMENT_ERROR, f"{title}: EnableExpress is not allowed in the premium tier.")
    return replace(
        storage,
        max_size_megabytes=_size(title, storage, tier),
        max_message_kilobytes=_message_kilobytes(title, storage, tier),
    )


def _size(title: str, storage: StorageSettings, tier: MessagingTier) -> int:
    """The size before multiplication: a client may send back what it was told."""
    asked, share = storage.max_size_megabytes, storage.max_size_megabytes // STANDARD_FRAGMENTS
    allowed = PREMIUM_SIZES if tier.has_large_sizes else STANDARD_SIZES
    if storage.is_partitioned and not tier.is_premium and share * STANDARD_FRAGMENTS == asked:
        asked = share if share in allowed else asked
    if asked not in allowed:
        text = f"MaxSizeInMegabytes is {asked}; {', '.join(map(str, allowed))} are allowed"
        raise out_of_range(title, text)
    return asked


def _message_kilobytes(title: str, storage: StorageSettings, tier: MessagingTier) -> int:
    asked = storage.max_message_kilobytes
    if asked in (0, tier.message_kilobytes):
        return 0
    if tier.message_kilobytes_limit is None:
        text = f"MaxMessageSizeInKilobytes is {tier.message_kilobytes} and cannot be set in the {tier.sku} tier"
        raise out_of_range(title, text)
    least, most = tier.message_kilobytes_min, tier.message_kilobytes_limit
    if not least <= asked <= most:
        raise out_of_range(title, f"MaxMessageSizeInKilobytes is {asked}; {least} to {most} are allowed")
    return asked
