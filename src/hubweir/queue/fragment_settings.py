"""Settings of a fragment: what its entity's description says that it has to know.

Those that change the meaning of the log (default_ttl_ms, requires_session, duplicate_window_ms, duplicates_have_keys,
max_delivery_count, dead_letters_on_expiry) are an operation in it whenever they change, so that a replay sees what held
then.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.messaging_store.log import Durability


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentSettings:
    """A frozen value; travels with the commands that make and change fragments. Times are milliseconds.

    default_ttl_ms: bounds the time to live of every message; None: no bound. max_delivery_count: so many deliveries
    may fail before a message is dead-lettered. dead_letters_on_expiry: else expired messages are dropped.
    duplicate_window_ms: how long the id of a message keeps out others; None: duplicates are not detected.
    duplicates_have_keys: it keeps out those of its session id or partition key alone.
    max_size_bytes: above it sends are refused (the size of stored records, dead letters included); None: no quota.
    is_express: what the fragment did is answered when it is written, before it is synced.
    """

    lock_duration_ms: int = 60_000
    default_ttl_ms: int | None = None
    max_delivery_count: int = 10
    dead_letters_on_expiry: bool = False
    requires_session: bool = False
    duplicate_window_ms: int | None = None
    max_size_bytes: int | None = None
    is_express: bool = False
    duplicates_have_keys: bool = False

    @property
    def durability(self) -> Durability:
        """When appends to the fragment's log are answered."""
        return Durability.RELAXED if self.is_express else Durability.DURABLE
