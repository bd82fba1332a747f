"""Uses of queues, topics and subscriptions that this process alone sees, for no command tells their brokers of them.

That is a sender that is attached and sends nothing, and a request to a management node. A broker knows all else
(FragmentInfo.unused_ms). Times are of the monotonic clock. After a crash nothing was used yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from hubweir.env import Clock
from hubweir.gateway.fragments import FragmentPlace
from hubweir.namespace.entity import AnyEntity


class EntityUses:
    """By the ids that commands name the fragments by; a use of a subscription is one of its topic, too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used_ms: dict[str, int] = {}
        self._senders: Counter[str] = Counter()

    def note(self, place: FragmentPlace) -> None:
        """Somebody used what lives there."""
        now_ms = self._clock.monotonic_ms()
        for log_id in (place.log_id, place.stored_in):
            self._used_ms[log_id] = now_ms

    def sender_came(self, place: FragmentPlace) -> None:
        """A sender is attached: what lives there is in use until it goes."""
        self._senders[place.log_id] += 1

    def sender_left(self, place: FragmentPlace) -> None:
        """A sender that came is gone."""
        self._senders[place.log_id] -= 1
        if not self._senders[place.log_id]:
            del self._senders[place.log_id]
        self.note(place)

    def unused_ms(self, log_id: str) -> int | None:
        """For how long nobody used it, as far as it is known here; None: nobody did."""
        if log_id in self._senders:
            return 0
        used_ms = self._used_ms.get(log_id)
        return None if used_ms is None else self._clock.monotonic_ms() - used_ms

    def forget(self, entity: AnyEntity) -> None:
        """It is gone."""
        ids = {entity.entity_id, *(placement.log_id for placement in entity.placements)}
        parts = f"{entity.entity_id}-"
        for log_id in [each for each in self._used_ms if each in ids or each.startswith(parts)]:
            del self._used_ms[log_id]

    def keep(self, log_ids: AbstractSet[str]) -> None:
        """Forget when others than these were used."""
        self._used_ms = {log_id: used_ms for log_id, used_ms in self._used_ms.items() if log_id in log_ids}
