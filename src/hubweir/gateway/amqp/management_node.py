"""$management: what hubs and partitions look like, for clients; making and changing them, for hubweir's own tools.

| operation              | type (com.microsoft: in front) | right              | answer                    |
|------------------------|--------------------------------|--------------------|---------------------------|
| READ                   | eventhub, partition            | any, on the hub    | 200, a map                |
| READ                   | capture                        | any, on the hub    | 200, a partition's map    |
| LIST                   | eventhub                       | Manage, everywhere | 200, a list of maps       |
| CREATE, UPDATE, DELETE | eventhub                       | Manage, on the hub | 201 or 200, the hub's map |
| CREATE, UPDATE, DELETE | consumergroup                  | Manage, on the hub | 201 or 200, the hub's map |
| READ                   | consumergroup                  | Manage, on the hub | 200, the group's map      |
| see rule_requests.py   | authorizationrule              | Manage, on the hub | the rule's map            |
| CREATE, DELETE         | revokedpublisher               | Manage, on the hub | 201 or 200, the hub's map |
| READ, UPDATE           | namespace                      | Manage, everywhere | 200, the namespace's map  |
| READ                   | namespace-usage                | Manage, everywhere | 200, usage by the hour |
| LIST, UPDATE           | broker                         | Manage, everywhere | see broker_requests.py    |
| UPDATE                 | messaging-store                | Manage, everywhere | see broker_requests.py    |

READ is the service's (management operations of the client libraries); the rest are hubweir's own, in the same form.
Every request is authorised by itself: by the token it carries (security_token) or else by the connection's claims.
How often a hub or partition is READ in a second is limited in the tiers (management_rate.py). What a request asks and
what the answer holds is management_forms.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.message import Message
from hubweir.broker.commands.capture import CaptureState
from hubweir.broker.commands.partition import PartitionInfo
from hubweir.errors import ARGUMENT_ERROR, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.amqp.broker_requests import BROKER, STORE, list_processes, mark_store, order_fault
from hubweir.gateway.amqp.capture_forms import capture_state_map
from hubweir.gateway.amqp.management_forms import (
    group_map,
    hub_map,
    hub_summary,
    namespace_map,
    new_hub,
    partition_map,
    usage_map,
    wanted_changes,
    wanted_units,
)
from hubweir.gateway.amqp.request_node import RequestNode, text_property
from hubweir.gateway.amqp.rule_requests import AUTHORIZATION_RULE, CREATED, OK, RULE_OPERATIONS, rule_request
from hubweir.namespace.changes import EntityChange
from hubweir.namespace.event_hub_changes import (
    add_group,
    change_group,
    remove_group,
    restore_publisher,
    revoke_publisher,
    set_settings,
)
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.rights import Rights

if TYPE_CHECKING:
    from hubweir.gateway.management_view import ManagementView

CAPTURE = "com.microsoft:capture"
NAMESPACE, NAMESPACE_USAGE = "com.microsoft:namespace", "com.microsoft:namespace-usage"
EVENT_HUB, PARTITION, CONSUMER_GROUP, REVOKED_PUBLISHER = (
    "com.microsoft:eventhub",
    "com.microsoft:partition",
    "com.microsoft:consumergroup",
    "com.microsoft:revokedpublisher",
)


class ManagementNode(RequestNode):
    """One sender link on a management node."""

    def request(self, message: Message, size: int) -> None:
        operation = (text_property(message, "operation") or "").upper()
        kind = (text_property(message, "type") or "").lower()
        step = STEPS.get((operation, kind))
        name = text_property(message, "name") or ""
        try:
            if step is None:
                text = f"The operation {operation[:32]!r} on the type {kind[:64]!r} does not exist here."
                raise ServiceError(NOT_IMPLEMENTED, text)
            step(self, message, size, name)
        except ServiceError as refusal:
            self.refuse(message, size, refusal, entity=name[:128])

    @property
    def _management(self) -> ManagementView:
        return self.host.gateway.management

    def _authorize(self, message: Message, rights: Rights, path: str) -> None:
        """Raise ServiceError unless the request may do what needs one of these rights at this path."""
        token = (message.application_properties or {}).get("security_token")
        self.host.claims.authorize_request(rights, path, token if isinstance(token, str) and token else None)
        self.host.authorized()

    def _authorize_read(self, message: Message, name: str) -> None:
        """As _authorize, for runtime information; then SERVER_BUSY above the rate. A stranger uses none of it up."""
        self._authorize(message, Rights.ALL, name)
        self.host.gateway.management_rate.count_request(self.host.env.monotonic_ms())

    def _read_hub(self, message: Message, size: int, name: str) -> None:
        self._authorize_read(message, name)
        self.answer(message, size, OK, "OK", hub_map(self._management.hub(name)))

    def _read_partition(self, message: Message, size: int, name: str) -> None:
        self._authorize_read(message, name)
        hub = self._management.hub(name).name
        partition_id = text_property(message, "partition") or ""

        def answered(info: PartitionInfo | ServiceError) -> None:
            if isinstance(info, ServiceError):
                self.refuse(message, size, info, entity=hub)
            else:
                self.answer(message, size, OK, "OK", partition_map(hub, partition_id, info))

        self._management.partition_info(hub, partition_id, answered)

    def _read_capture(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.ALL, name)
        hub = self._management.hub(name).name
        partition_id = text_property(message, "partition") or ""

        def answered(state: CaptureState | ServiceError) -> None:
            if isinstance(state, ServiceError):
                self.refuse(message, size, state, entity=hub)
            else:
                self.answer(message, size, OK, "OK", capture_state_map(hub, partition_id, state))

        self._management.capture_state(hub, partition_id, answered)

    def _read_namespace(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, "")
        self.answer(message, size, OK, "OK", self._namespace_map())

    def _change_namespace(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, "")
        held, maximum = wanted_units(message)

        def changed(result: NamespaceDescription | ServiceError) -> None:
            if isinstance(result, ServiceError):
                self.refuse(message, size, result, entity="")
            else:
                self.answer(message, size, OK, "OK", self._namespace_map())

        self.host.gateway.units.change(changed, held=held, maximum=maximum)

    def _read_usage(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, "")
        since = (message.application_properties or {}).get("since")
        since_ms = int(since) if isinstance(since, int) else 0

        def told(hours: list[tuple[int, ...]] | ServiceError) -> None:
            if isinstance(hours, ServiceError):
                self.refuse(message, size, hours, entity="")
            else:
                self.answer(message, size, OK, "OK", usage_map(hours, since_ms))

        self.host.gateway.units.ask_usage(told)

    def _list_brokers(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, "")
        list_processes(self.host.gateway, *self._ends_of(message, size))

    def _order_fault(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, "")
        order_fault(self.host.gateway, name, text_property(message, "fault"), *self._ends_of(message, size))

    def _mark_store(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, "")
        mark_store(self.host.gateway, name, text_property(message, "fault"), *self._ends_of(message, size))

    def _ends_of(self, message: Message, size: int) -> tuple[Callable[[object], None], Callable[[ServiceError], None]]:
        """What answers a request with a body, and what refuses it."""
        return (
            lambda body: self.answer(message, size, OK, "OK", body),
            lambda refusal: self.refuse(message, size, refusal, entity=""),
        )

    def _namespace_map(self) -> dict[str, object]:
        gateway = self.host.gateway
        partitions = sum(hub.partition_count for hub in self._management.hubs())
        return namespace_map(
            gateway.namespace.description,
            partitions,
            gateway.units.warning,
            profile=gateway.namespace.profile.name,
            host_names=sorted(gateway.hosts.names),
        )

    def _list_hubs(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, "")
        self.answer(message, size, OK, "OK", [hub_summary(hub) for hub in self._management.hubs()])

    def _create_hub(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        self.host.gateway.keeper.create(new_hub(name, message), self._changed(message, size, name, CREATED))

    def _change_hub(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        hub = self._management.hub(name)
        its = partial(set_settings, wanted=wanted_changes(hub, message), seen=hub)
        self._change(message, size, name, its)

    def _delete_hub(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        self.host.gateway.keeper.delete(name, EventHubDescription, self._changed(message, size, name, OK))

    def _create_group(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        text = text_property(message, "user_metadata") or ""
        self._change(
            message, size, name, partial(add_group, name=_named(message, "group"), user_metadata=text), CREATED
        )

    def _change_group(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        text = text_property(message, "user_metadata")
        self._change(message, size, name, partial(change_group, name=_named(message, "group"), user_metadata=text))

    def _read_group(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        hub = self._management.hub(name)
        group = self._management.group(name, _named(message, "group"))
        self.answer(message, size, OK, "OK", group_map(hub.name, hub.details_of(group)))

    def _delete_group(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        self._change(message, size, name, partial(remove_group, name=_named(message, "group")))

    def _revoke(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        publisher = _named(message, "publisher")
        self._change(message, size, name, partial(revoke_publisher, publisher=publisher), CREATED)

    def _restore(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        self._change(message, size, name, partial(restore_publisher, publisher=_named(message, "publisher")))

    def _rule(self, message: Message, size: int, name: str) -> None:
        self._authorize(message, Rights.MANAGE, name)
        rule_request(
            self.host.gateway.rules,
            (text_property(message, "operation") or "").upper(),
            message,
            lambda code, body: self.answer(message, size, code, "Created" if code == CREATED else "OK", body),
            lambda refusal: self.refuse(message, size, refusal, entity=name[:128]),
        )

    def _change(
        self, message: Message, size: int, name: str, change: EntityChange[EventHubDescription], code: int = OK
    ) -> None:
        """Change an event hub, and answer the request."""
        done = self._changed(message, size, name, code)
        self.host.gateway.keeper.change(name, EventHubDescription, change, done)

    def _changed(
        self, message: Message, size: int, name: str, code: int
    ) -> Callable[[EventHubDescription | ServiceError], None]:
        """What answers the request when the change is durable, or refused."""

        def changed(result: EventHubDescription | ServiceError) -> None:
            if isinstance(result, ServiceError):
                self.refuse(message, size, result, entity=name[:128])
            else:
                self.answer(message, size, code, "Created" if code == CREATED else "OK", hub_summary(result))

        return changed


def _named(message: Message, what: str) -> str:
    """The name in the property `what` of a request about a part of a hub."""
    name = text_property(message, what)
    if not name:
        raise ServiceError(ARGUMENT_ERROR, f"The request has no property '{what}' with the {what}'s name.")
    return name


# By operation and type: the table of this page.
STEPS: dict[tuple[str, str], Callable[[ManagementNode, Message, int, str], None]] = {
    ("READ", EVENT_HUB): ManagementNode._read_hub,
    ("READ", PARTITION): ManagementNode._read_partition,
    ("READ", CAPTURE): ManagementNode._read_capture,
    ("READ", NAMESPACE): ManagementNode._read_namespace,
    ("UPDATE", NAMESPACE): ManagementNode._change_namespace,
    ("READ", NAMESPACE_USAGE): ManagementNode._read_usage,
    ("LIST", BROKER): ManagementNode._list_brokers,
    ("UPDATE", BROKER): ManagementNode._order_fault,
    ("UPDATE", STORE): ManagementNode._mark_store,
    ("LIST", EVENT_HUB): ManagementNode._list_hubs,
    ("CREATE", EVENT_HUB): ManagementNode._create_hub,
    ("UPDATE", EVENT_HUB): ManagementNode._change_hub,
    ("DELETE", EVENT_HUB): ManagementNode._delete_hub,
    ("CREATE", CONSUMER_GROUP): ManagementNode._create_group,
    ("READ", CONSUMER_GROUP): ManagementNode._read_group,
    ("UPDATE", CONSUMER_GROUP): ManagementNode._change_group,
    ("DELETE", CONSUMER_GROUP): ManagementNode._delete_group,
    ("CREATE", REVOKED_PUBLISHER): ManagementNode._revoke,
    ("DELETE", REVOKED_PUBLISHER): ManagementNode._restore,
    **dict.fromkeys(((operation, AUTHORIZATION_RULE) for operation in RULE_OPERATIONS), ManagementNode._rule),
}
