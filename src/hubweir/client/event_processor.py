"""A whole hub for one consumer group, shared among as many processors as run: each partition is handled by one.

    async def handle(context: PartitionContext, run: EventRun) -> None: ...

    async with EventProcessor(client, SqliteCheckpointStore("group.db"), handle):
        await stopped.wait()

Who owns what is decided by load_balancer.py over the records of a checkpoint store (checkpoint_store.py); what happens
to a partition that is owned is partition_pump.py. When a processor dies, its partitions move once its leases are over:
within `lease_s` of its last round. Every event is handled at least once; what may come again is bounded by
`checkpoint_every` (processor_options.py). A new owner's reader displaces the old one's.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from random import Random

from hubweir.client.checkpoint_store import BlockingCheckpointStore, CheckpointStore, Record, as_checkpoint_store
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.load_balancer import LoadBalancer, Ownership, OwnershipClaim
from hubweir.client.partition_context import GroupName, PartitionContext
from hubweir.client.partition_pump import PartitionPump
from hubweir.client.processor_options import (
    DEFAULT_OPTIONS,
    CloseReason,
    Handlers,
    OnClaimed,
    OnClosed,
    OnError,
    OnEvents,
    ProcessorOptions,
    nothing,
)
from hubweir.drivers.tasks import Tasks
from hubweir.errors import ILLEGAL_STATE, ServiceError

logger = logging.getLogger(__name__)


class EventProcessor:
    """One processor of a group. Start and stop it on one loop; stop it before the client and the store are closed."""

    def __init__(
        self,
        client: EventHubClient,
        store: CheckpointStore | BlockingCheckpointStore,
        on_events: OnEvents,
        options: ProcessorOptions = DEFAULT_OPTIONS,
        *,
        on_error: OnError | None = None,
        on_claimed: OnClaimed = nothing,
        on_closed: OnClosed = nothing,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """on_events and the others: see Handlers. Without on_error failures are logged. All are tried again."""
        self.owner_id = options.owner_id or str(uuid.uuid4())
        self._client = client
        self._store = as_checkpoint_store(store)
        self._options = options
        self._handlers = Handlers(on_events, on_error or _logged_for(self.owner_id), on_claimed, on_closed)
        self._name = GroupName(client.namespace, client.hub, options.group)
        self._now_s = now_s
        self._balancer = LoadBalancer(
            self.owner_id,
            lease_s=options.lease_s,
            interval_s=options.interval_s,
            strategy=options.strategy,
            random=Random(),
        )
        self._partition_ids: tuple[str, ...] = ()
        self._held: dict[str, Record] = {}
        self._claim_ended = asyncio.Event()  # set but while the store is asked for a claim
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
        self._is_running, self._claim_ended = True, asyncio.Event()  # of the loop of now
        self._claim_ended.set()
        self._tasks.start(self._balance(), name="rounds")

    async def stop(self) -> None:
        """Let handlers finish, mark what they did, give up the leases so that others go on at once. Not from a handler.

        It can be started again. Safe to call twice.
        """
        if not self._is_running:
            return
        try:  # it may be stored whatever happens here, and only its answer says which leases there are to give up
            async with asyncio.timeout(self._options.grace_s):
                await self._claim_ended.wait()
        except TimeoutError:
            said = (
                f"the store did not answer a claim within {self._options.grace_s} s: its leases run out by themselves"
            )
            await self._tell(None, TimeoutError(said))
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
        self._claim_ended.clear()
        try:
            claimed = await self._store.claim_ownership(claims) if claims else ()
        finally:
            self._claim_ended.set()
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
        told = replace(self._handlers, on_error=self._tell)
        self._pumps[partition_id] = pump = PartitionPump(self._client, context, told, self._options)
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
            await self._handlers.on_error(context, error)
        except Exception:  # the user's; there is nobody else to tell
            logger.exception("the error handler of event processor %s failed", self.owner_id)


def _logged_for(owner_id: str) -> OnError:
    """What is done with failures when the user does not want to be told."""

    async def log(context: PartitionContext | None, error: Exception) -> None:
        what = "a round" if context is None else f"partition {context.partition_id}"
        logger.warning("event processor %s: %s failed and is tried again: %s", owner_id, what, error, exc_info=error)

    return log
