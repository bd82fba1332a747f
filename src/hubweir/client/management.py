"""Asking and changing a namespace over `$management`: hubs, their partitions, consumer groups.

READ is the service's own operation ("Event Hubs AMQP protocol", the management node). CREATE, UPDATE, DELETE and LIST
are hubweir's, for its command line; they need a token with Manage. What the answers say is entity_info.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.types.values import Int, Long
from hubweir.client.connection_tokens import status_of
from hubweir.client.entity_info import GroupInfo, HubInfo, NamespaceInfo, PartitionState
from hubweir.client.request_link import RequestLink
from hubweir.errors import CONDITION_OF_SYMBOL, CONDITIONS, INTERNAL_ERROR, ServiceError

if TYPE_CHECKING:
    from hubweir.client.connection import Connection

_HUB, _PARTITION, _GROUP = "com.microsoft:eventhub", "com.microsoft:partition", "com.microsoft:consumergroup"
_CAPTURE, _BROKER = "com.microsoft:capture", "com.microsoft:broker"
_STORE = "com.microsoft:messaging-store"
_REVOKED = "com.microsoft:revokedpublisher"

_NAMESPACE, _NAMESPACE_USAGE = "com.microsoft:namespace", "com.microsoft:namespace-usage"


class Management:
    """The management node of one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._link: RequestLink | None = None

    async def hub(self, name: str) -> HubInfo:
        """ServiceError NOT_FOUND when there is no such hub."""
        await self.connection.authorization.authorize(name)
        return HubInfo.of(await self._ask("READ", _HUB, name))

    async def partition(self, hub: str, partition_id: str) -> PartitionState:
        """ServiceError NOT_FOUND for the hub, ARGUMENT_OUT_OF_RANGE for the partition."""
        await self.connection.authorization.authorize(hub)
        return PartitionState.of(await self._ask("READ", _PARTITION, hub, {"partition": partition_id}))

    async def partitions(self, hub: str, partition_ids: Sequence[str]) -> list[PartitionState]:
        """Several partitions, in the order of partition_ids. The requests overlap: it takes about as long as one."""
        await self.connection.authorization.authorize(hub)
        await self._linked()  # or each request would make a link of its own
        return await asyncio.gather(*(self.partition(hub, each) for each in partition_ids))

    async def capture_state(self, hub: str, partition_id: str) -> dict[str, Any]:
        """How far capture of a partition is; keys as gateway/amqp/capture_forms.py says."""
        await self.connection.authorization.authorize(hub)
        state: dict[str, Any] = await self._ask("READ", _CAPTURE, hub, {"partition": partition_id})
        return state

    async def namespace(self) -> NamespaceInfo:
        """The namespace itself."""
        await self.connection.authorization.authorize("")
        return NamespaceInfo.of(await self._ask("READ", _NAMESPACE, ""))

    async def change_namespace(
        self, *, throughput_units: int | None = None, maximum_throughput_units: int | None = None
    ) -> NamespaceInfo:
        """Hold other units; None leaves a number as it is. ServiceError ARGUMENT_OUT_OF_RANGE."""
        await self.connection.authorization.authorize("")
        changes: dict[str, object] = {}
        if throughput_units is not None:
            changes["throughput_units"] = Int(throughput_units)
        if maximum_throughput_units is not None:
            changes["maximum_throughput_units"] = Int(maximum_throughput_units)
        return NamespaceInfo.of(await self._ask("UPDATE", _NAMESPACE, "", body=changes))

    async def namespace_usage(self, *, since_ms: int = 0) -> list[dict[str, int]]:
        """What the namespace used, a dict for each hour from since_ms (wall clock) on, oldest first."""
        await self.connection.authorization.authorize("")
        body = await self._ask("READ", _NAMESPACE_USAGE, "", {"since": Long(since_ms)})
        return [dict(zip(body["columns"], map(int, row), strict=True)) for row in body["hours"]]

    async def brokers(self) -> list[dict[str, Any]]:
        """The broker processes: broker (its number), pid, stores, state, connections, starts, away (those of its stores
        that are not served). NOT_IMPLEMENTED where the service is one process with one store.
        """
        await self.connection.authorization.authorize("")
        found: list[dict[str, Any]] = await self._ask("LIST", _BROKER, "")
        return found

    async def order_fault(self, broker: int, fault: str) -> None:
        """Have a broker process stop, start, be killed (kill) or stall; of a development namespace alone."""
        await self.connection.authorization.authorize("")
        await self._ask("UPDATE", _BROKER, str(broker), {"fault": fault})

    async def mark_store(self, store: int, *, away: bool) -> None:
        """Have a messaging store taken away, or brought back; of a development namespace alone."""
        await self.connection.authorization.authorize("")
        await self._ask("UPDATE", _STORE, str(store), {"fault": "away" if away else "back"})

    async def list_hubs(self) -> list[HubInfo]:
        """All hubs of the namespace, by name."""
        await self.connection.authorization.authorize("")
        return [HubInfo.of(body) for body in await self._ask("LIST", _HUB, "")]

    async def create_hub(
        self,
        name: str,
        *,
        partition_count: int,
        retention_ms: int,
        durability: str,
        consumer_groups: tuple[str, ...] = (),
        status: str | None = None,
        user_metadata: str | None = None,
        capture: dict[str, Any] | None = None,
    ) -> HubInfo:
        """Create a hub; its partition count is for ever. ServiceError ENTITY_EXISTS, ARGUMENT_OUT_OF_RANGE."""
        await self.connection.authorization.authorize("")
        description: dict[str, object] = {
            "partition_count": Int(partition_count),
            "retention_ms": Long(retention_ms),
            "durability": durability,
            "consumer_groups": list(consumer_groups),
        }
        description |= _given(status=status, user_metadata=user_metadata)
        if capture:
            description["capture"] = _capture_body(capture)
        return HubInfo.of(await self._ask("CREATE", _HUB, name, body=description))

    async def change_hub(
        self,
        name: str,
        *,
        retention_ms: int | None = None,
        durability: str | None = None,
        status: str | None = None,
        user_metadata: str | None = None,
        partition_count: int | None = None,
        capture: dict[str, Any] | None = None,
    ) -> HubInfo:
        """Change what may be changed of a hub; None leaves it as it is, and so do keys that capture has not.

        Another partition_count is refused.
        """
        await self.connection.authorization.authorize("")
        changes = _given(durability=durability, status=status, user_metadata=user_metadata)
        if retention_ms is not None:
            changes["retention_ms"] = Long(retention_ms)
        if partition_count is not None:
            changes["partition_count"] = Int(partition_count)
        if capture:
            changes["capture"] = _capture_body(capture)
        return HubInfo.of(await self._ask("UPDATE", _HUB, name, body=changes))

    async def delete_hub(self, name: str) -> None:
        """Delete a hub and everything in it."""
        await self.connection.authorization.authorize("")
        await self._ask("DELETE", _HUB, name)

    async def group(self, hub: str, group: str) -> GroupInfo:
        """A consumer group; ServiceError NOT_FOUND for a hub or a group that is not there."""
        await self.connection.authorization.authorize("")
        return GroupInfo.of(await self._ask("READ", _GROUP, hub, {"group": group}))

    async def create_group(self, hub: str, group: str, *, user_metadata: str | None = None) -> None:
        """Add a consumer group to a hub."""
        await self.connection.authorization.authorize("")
        await self._ask("CREATE", _GROUP, hub, {"group": group, **_given(user_metadata=user_metadata)})

    async def change_group(self, hub: str, group: str, *, user_metadata: str | None = None) -> None:
        """Give a consumer group another text; None leaves it as it is."""
        await self.connection.authorization.authorize("")
        await self._ask("UPDATE", _GROUP, hub, {"group": group, **_given(user_metadata=user_metadata)})

    async def delete_group(self, hub: str, group: str) -> None:
        """Remove a consumer group; `$Default` stays."""
        await self.connection.authorization.authorize("")
        await self._ask("DELETE", _GROUP, hub, {"group": group})

    async def revoke_publisher(self, hub: str, publisher: str) -> None:
        """Its links end within seconds, and it cannot send until it is restored; what it sent stays."""
        await self.connection.authorization.authorize("")
        await self._ask("CREATE", _REVOKED, hub, {"publisher": publisher})

    async def restore_publisher(self, hub: str, publisher: str) -> None:
        """Let a revoked publisher send again."""
        await self.connection.authorization.authorize("")
        await self._ask("DELETE", _REVOKED, hub, {"publisher": publisher})

    async def _ask(
        self, operation: str, kind: str, name: str, more: dict[str, object] | None = None, *, body: object = None
    ) -> Any:
        link = await self._linked()
        properties = {"operation": operation, "type": kind, "name": name, **(more or {})}
        request = Message(application_properties=properties, body=ValueBody(body))
        answer = await link.call(request, timeout_s=self.connection.timeout_s)
        status, text = status_of(answer)
        if status >= 400:
            raise _error(answer, status, text)
        return answer.body.value if isinstance(answer.body, ValueBody) else None

    async def _linked(self) -> RequestLink:
        """The pair of links of now, attached if it is not."""
        if self._link is None or self._link.error is not None:  # a service detaches a link that was idle for long
            self._link = RequestLink(self.connection, "$management")
            await self._link.ready(self.connection.timeout_s)
        return self._link


def _given(**settings: str | None) -> dict[str, object]:
    """Those that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def _error(answer: Message, status: int, text: str) -> ServiceError:
    symbol = str((answer.application_properties or {}).get("error-condition", ""))
    by_symbol = CONDITION_OF_SYMBOL.get(symbol)
    by_status = next((condition for condition in CONDITIONS if condition.management == status), INTERNAL_ERROR)
    return ServiceError(by_symbol or by_status, text)


def _capture_body(capture: dict[str, Any]) -> dict[str, object]:
    """Settings of capture with the numbers as the service wants them."""
    return {
        key: Long(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for key, value in capture.items()
    }
