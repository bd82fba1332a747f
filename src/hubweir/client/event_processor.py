"""A whole hub for one consumer group, shared among as many processors as run: each partition is handled by one.

    async def handle(context: PartitionContext, run: EventRun) -> None: ...

    async with EventProcessor(client, SqliteCheckpointStore("group.db"), handle):
        await stopped.wait()

Who owns what is decided by load_balancer.py over the records of a checkpoint store (checkpoint_store.py); what happens
to a partition that is owned is partition_pump.py. When a processor dies, its partitions move once its leases are over:
within `lease_s` of its last round. Every event is handled at least once; what may come again is bounded by
`checkpoint_every`. Readers have owner level 0, as those of the official processors, so a new owner displaces the old.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from random import Random

from hubweir.client.checkpoint_store import (
    BlockingCheckpointStore,
    CheckpointStore,
    Record,
    as_checkpoint_store,
)
from hubweir.client.event_hub_client import DEFAULT_GROUP, EventHubClient
from hubweir.client.load_balancer import LoadBalancer, Ownership, OwnershipClaim, Strategy
from hubweir.client.partition_context import GroupName, PartitionContext
from hubweir.client.partition_pump import (
    CloseReason,
    OnClaimed,
    OnClosed,
    OnError,
    OnEvents,
    PartitionPump,
    PumpSettings,
    nothing,
)
from hubweir.drivers.tasks import Tasks
from hubweir.errors import ILLEGAL_STATE, ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition

logger = logging.getLogger(__name__)

# A round costs the store one list and one claim. With these, processors of the official clients, which come round every
# 10 to 36 s by default, keep their leases in a group with ours.
DEFAULT_INTERVAL_S = 10.0
DEFAULT_LEASE_S = 60.0
DEFAULT_CHECKPOINT_EVERY = 1_000


class EventProcessor:
    """One processor of a group. Start and stop it on one loop; stop it before the client and the store are closed."""

    def __init__(
        self,
        client: EventHubClient,
        store: CheckpointStore | BlockingCheckpointStore,
        on_events: OnEvents,
        *,
        group: str = DEFAULT_GROUP,
        position: EventPosition = EARLIEST,
        checkpoint_every: int | None = DEFAULT_CHECKPOINT_EVERY,
        lease_s: float = DEFAULT_LEASE_S,
        interval_s: float = DEFAULT_INTERVAL_S,
        strategy: Strategy = Strategy.GREEDY,
        on_error: OnError | None = None,
        on_claimed: OnClaimed = nothing,
        on_closed: OnClosed = nothing,
        owner_id: str | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """on_events: gets runs of one partition, one after the other; partitions run side by side.

        position: where a partition without a checkpoint begins. checkpoint_every: events; None: only when the handler
        calls context.checkpoint(). lease_s, interval_s: the same in all processors of a group, near enough.
        on_error: told of every failure (context None: of a round); by default it is logged. All are tried again.
        """
        if checkpoint_every is not None and checkpoint_every < 1:
            raise ValueError(f"a checkpoint every {checkpoint_every} events: give 1 or more, or None")
        self.owner_id = owner_id or str(uuid.uuid4())
        self._client = client
        self._store = as_checkpoint_store(store)
        self._name = GroupName(client.namespace, client.hub, group)
        self._on_error = on_error or self._log
        self._now_s = now_s
        self._balancer = LoadBalancer(
            self.owner_id, lease_s=lease_s, interval_s=interval_s, strategy=strategy, random=Random()
        )
        self._settings = PumpSettings(
            on_events=on_events,
            on_error=self._tell,
            on_claimed=on_claimed,
            on_closed=on_closed,
            position=position,
            checkpoint_every=checkpoint_every,
        )
        self._partition_ids: tuple[str, ...] = ()
        self._held: dict[str, Record] = {}
        self._pumps: dict[str, PartitionPump] = {}
        self._leaving: set[str] = set()
        self._tasks = Tasks(f"event processor {self.owner_id}")
        self._is_running = False

    @property
    def partition_ids(self) -> tuple[str, ...]:
        """The partitions that are read here now, in order."""
        return tuple(sorted(pid for pid, pump in self._pumps.items() if not pump.is_over))

    async def start(self) -> None:
        """Begin to claim and to handle, in tasks of this object; returns at once. ServiceError ILLEGAL_STATE: it runs.

        After a crash its leases end by themselves; what was handled and not marked is handled again, by whoever claims.
        """
        if self._is_running:
            raise ServiceError(ILLEGAL_STATE, "this processor runs already")
        self._is_running = True
        self._tasks.start(self._balance(), name="rounds")

    async def stop(self) -> None:
        """Let handlers finish, mark what they did, give up the leases so that others go on at once. Not from a handler.

        It can be started again. Safe to call twice.
        """
        if not self._is_running:
            return
        await self._tasks.stop()
        await asyncio.gather(*(pump.stop(CloseReason.SHUTDOWN) for pump in self._pumps.values()))
        self._pumps.clear()
        self._leaving.clear()
        self._is_running = False
        held, self._held = self._held, {}
        if held:
            try:
                await self._store.claim_ownership([{**record, "owner_id": ""} for record in held.values()])
            except Exception as error:  # a foreign store's; the leases run out by themselves
                await self._tell(None, error)

    async def __aenter__(self) -> EventProcessor:
        await self.start()
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.stop()

    async def _balance(self) -> None:
        """Round after round. One that fails changes nothing: what is read goes on being read."""
        while True:
            began_s = self._now_s()
            next_at_s = began_s + self._balancer.interval_s
            try:
                next_at_s = await self._round(began_s)
            except Exception as error:  # whatever the store or the hub raises
                await self._tell(None, error)
            # No wall clock that was set back may keep us from renewing.
            await asyncio.sleep(min(max(0.0, next_at_s - self._now_s()), self._balancer.interval_s * 1.1))

    async def _round(self, now_s: float) -> float:
        """Read the leases, claim what the balancer says, open and close partitions; when to look again."""
        name = self._name
        if not self._partition_ids:
            self._partition_ids = (await self._client.describe()).partition_ids
        records = await self._store.list_ownership(name.namespace, name.hub, name.group)
        decision = self._balancer.decide(map(Ownership.of, records), self._partition_ids, now_s)
        # A store may refuse an empty list.
        claims = [self._claim(claim) for claim in decision.claims]
        claimed = await self._store.claim_ownership(claims) if claims else ()
        self._held = {record["partition_id"]: record for record in claimed}
        for partition_id in list(self._pumps):
            if partition_id not in self._held or self._pumps[partition_id].is_over:
                self._leave(partition_id)
        for partition_id in self._held:
            if partition_id not in self._pumps:
                self._enter(partition_id)
        return decision.next_at_s

    def _claim(self, claim: OwnershipClaim) -> Record:
        more = {} if claim.etag is None else {"etag": claim.etag}
        return self._name.record(claim.partition_id, owner_id=self.owner_id, **more)

    def _enter(self, partition_id: str) -> None:
        context = PartitionContext(self._name, partition_id, self._store)
        self._pumps[partition_id] = pump = PartitionPump(self._client, context, self._settings)
        pump.start()

    def _leave(self, partition_id: str) -> None:
        """Close a partition beside the rounds: a slow handler must not hold up the renewing of the others."""
        if partition_id not in self._leaving:
            self._leaving.add(partition_id)
            self._tasks.start(self._close(partition_id), name=f"closing partition {partition_id}")

    async def _close(self, partition_id: str) -> None:
        await self._pumps[partition_id].stop(CloseReason.OWNERSHIP_LOST)
        del self._pumps[partition_id]
        self._leaving.discard(partition_id)
        if partition_id in self._held:  # another reader displaced ours, and the lease is ours all the same
            self._enter(partition_id)

    async def _tell(self, context: PartitionContext | None, error: Exception) -> None:
        try:
            await self._on_error(context, error)
        except Exception:  # the user's; there is nobody else to tell
            logger.exception("the error handler of event processor %s failed", self.owner_id)

    async def _log(self, context: PartitionContext | None, error: Exception) -> None:
        what = "a round" if context is None else f"partition {context.partition_id}"
        logger.warning(
            "event processor %s: %s failed and is tried again: %s", self.owner_id, what, error, exc_info=error
        )
