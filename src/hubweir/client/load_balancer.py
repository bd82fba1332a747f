"""Decides which partitions a processor of a consumer group claims next. Time and chance are passed in.

An ownership is a record of the checkpoint store. It holds for `lease_s` after its last claim; its owner claims it again
(renews it) every round. What is free is claimed up to an even share; when nothing is free, one partition a round is
taken from the fullest owner, as long as that makes the two more even. All processors decide alone, from what they read,
and claim by etag, so of two that want the same partition one gets it. Processors of the official clients go by the same
records and the same shares, so both kinds may be in one group.

An ownership whose time is over is free for everybody, also when its owner still runs: clocks of the machines in a group
must agree to well under the lease time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

# Behind the end of an ownership that ran out: so much later it is looked at again.
_BEHIND_THE_END_S = 0.01


class Strategy(Enum):
    """How fast free partitions are taken: the whole share in one round, or one a round (fewer moves at a start)."""

    GREEDY = "greedy"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class Ownership:
    """One ownership record. owner_id: "" when it was given up. modified_at_s: seconds since 1970."""

    partition_id: str
    owner_id: str
    modified_at_s: float
    etag: str | None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Ownership:
        """Read a record of a checkpoint store."""
        modified = record.get("last_modified_time")
        return cls(record["partition_id"], record.get("owner_id") or "", float(modified or 0.0), record.get("etag"))


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """An ownership to write: free ones that nobody ever held have no etag."""

    partition_id: str
    etag: str | None


@dataclass(frozen=True, slots=True)
class Round:
    """One decision: what to claim now (renewals first), and by when to look again: seconds since 1970."""

    claims: tuple[OwnershipClaim, ...]
    next_at_s: float


class LoadBalancer:
    """The decisions of one processor."""

    def __init__(
        self, owner_id: str, *, lease_s: float, interval_s: float, strategy: Strategy = Strategy.GREEDY, random: Random
    ) -> None:
        """lease_s: how long a claim holds. interval_s: between two rounds. ValueError when one round could miss it."""
        if not owner_id:
            raise ValueError("the owner id is empty, which means nobody: give a name that no other processor has")
        if interval_s <= 0 or lease_s < 2 * interval_s:
            raise ValueError(
                f"a lease of {lease_s} s is renewed every {interval_s} s: make the lease at least twice as long"
            )
        self.owner_id = owner_id
        self.lease_s = lease_s
        self.interval_s = interval_s
        self._strategy = strategy
        self._random = random

    def decide(self, ownerships: Iterable[Ownership], partition_ids: Sequence[str], now_s: float) -> Round:
        """ownerships: all records of the group, as the store has them. partition_ids: of the hub."""
        known = {each.partition_id: each for each in ownerships if each.partition_id in partition_ids}
        # A record that still names us is ours even when its time is over: its etag proves that nobody took it.
        mine = [each for each in known.values() if each.owner_id == self.owner_id]
        held: dict[str, list[Ownership]] = {}
        for ownership in known.values():
            if ownership.owner_id not in ("", self.owner_id) and self._ends_at_s(ownership) > now_s:
                held.setdefault(ownership.owner_id, []).append(ownership)
        taken = {each.partition_id for of_one in (mine, *held.values()) for each in of_one}
        free = [partition_id for partition_id in partition_ids if partition_id not in taken]

        more = self._from_free(free, len(mine), len(partition_ids), len(held) + 1)
        if not free:
            more = self._from_fullest(held, len(mine))
        claims = [OwnershipClaim(each.partition_id, each.etag) for each in mine]
        claims += [OwnershipClaim(partition_id, self._etag(known, partition_id)) for partition_id in more]
        return Round(tuple(claims), self._next_at_s(held, now_s))

    def _from_free(self, free: list[str], count: int, partitions: int, owners: int) -> list[str]:
        most = -(-partitions // owners) - count  # the larger of the even shares, less what is ours
        if self._strategy is Strategy.BALANCED:
            most = min(most, 1)
        return self._random.sample(free, min(most, len(free))) if most > 0 else []

    def _from_fullest(self, held: dict[str, list[Ownership]], count: int) -> list[str]:
        """One partition of the owner with the most, when it has at least two more than we have."""
        fullest = max(held.values(), key=len, default=[])
        return [self._random.choice(fullest).partition_id] if len(fullest) >= count + 2 else []

    def _next_at_s(self, held: dict[str, list[Ownership]], now_s: float) -> float:
        """A round of up to a tenth more, so that processors do not keep step; sooner when somebody's lease runs out."""
        regular = now_s + self.interval_s * (1 + self._random.random() / 10)
        ends = (self._ends_at_s(each) + _BEHIND_THE_END_S for of_one in held.values() for each in of_one)
        return min([regular, *ends])

    def _ends_at_s(self, ownership: Ownership) -> float:
        return ownership.modified_at_s + self.lease_s

    @staticmethod
    def _etag(known: dict[str, Ownership], partition_id: str) -> str | None:
        ownership = known.get(partition_id)
        return None if ownership is None else ownership.etag
