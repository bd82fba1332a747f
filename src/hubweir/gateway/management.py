"""One service for the management doors: create, read, change, delete, list hubs and groups; a partition's figures.

$management and the HTTP door (ATOM) use it. Authorisation is the door's. Reads of a partition always ask its owner, so
two reads without a send between are equal, whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.commands import Answer, AskCaptureState, AskPartitionInfo, CaptureState, PartitionInfo, Refusal
from hubweir.errors import INTERNAL_ERROR, NOT_ALLOWED, ServiceError
from hubweir.gateway.catalog_keeper import CatalogKeeper, OnHub, described, service_error
from hubweir.gateway.directory import Directory
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.namespace.capture_description import check_destination_is_served
from hubweir.namespace.descriptions import (
    AuthorizationRuleDescription,
    EventHubDescription,
    NamespaceDescription,
    check_rules,
)
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.resource_path import fold

Rules = tuple[AuthorizationRuleDescription, ...]


class Management:
    """See the module's text. Every on_done is called once, on the loop, with a value or a ServiceError."""

    def __init__(
        self,
        namespace: Namespace,
        directory: Directory,
        keeper: CatalogKeeper,
        units: NamespaceUnits,
        *,
        capture_account: str = "",
    ) -> None:
        """capture_account: the storage account that captured files may go to, or empty."""
        self.units = units
        self._namespace = namespace
        self._directory = directory
        self._keeper = keeper
        self._capture_account = capture_account

    def hub(self, name: str) -> EventHubDescription:
        """The hub; ServiceError NOT_FOUND."""
        return self._directory.hub(name).description

    def namespace(self) -> NamespaceDescription:
        return self._namespace.description

    def hubs(self) -> tuple[EventHubDescription, ...]:
        """All hubs that are served, in the order they were made."""
        return tuple(entry.description for entry in self._namespace.hubs())

    def partition_info(
        self, hub: str, partition_id: str, on_done: Callable[[PartitionInfo | ServiceError], None]
    ) -> None:
        """The partition's bounds as its owner has them now. Raises ServiceError when there is no such partition."""
        place = self._directory.partition(hub, partition_id)

        def answered(answer: Answer) -> None:
            match answer:
                case PartitionInfo():
                    on_done(answer)
                case Refusal():
                    on_done(service_error(answer))
                case _:
                    on_done(ServiceError(INTERNAL_ERROR, "The broker gave an answer that belongs to another request."))

        place.broker.submit(AskPartitionInfo(place.log_id), answered)

    def capture_state(
        self, hub: str, partition_id: str, on_done: Callable[[CaptureState | ServiceError], None]
    ) -> None:
        """How far capture of a partition is. Raises ServiceError when there is no such partition."""
        place = self._directory.partition(hub, partition_id)

        def answered(answer: Answer) -> None:
            match answer:
                case CaptureState():
                    on_done(answer)
                case Refusal():
                    on_done(service_error(answer))
                case _:
                    on_done(ServiceError(INTERNAL_ERROR, "The broker gave an answer that belongs to another request."))

        place.broker.submit(AskCaptureState(place.log_id), answered)

    def create_hub(self, description: EventHubDescription, on_done: OnHub) -> None:
        """Make a hub. Raises ServiceError when its captured files would have nowhere to go."""
        check_destination_is_served(description.name, description.capture, self._capture_account)
        self._keeper.create(description, on_done)

    def change_hub(self, wanted: EventHubDescription, on_done: OnHub, *, rules: Rules | None = None) -> None:
        """Set what may change of a hub, and these rules in place of the hub's own; None leaves them as they are.

        Another number of partitions is refused. Raises ServiceError for rules that are not legal, and for captured
        files that would have nowhere to go: nothing is changed.
        """
        check_destination_is_served(wanted.name, wanted.capture, self._capture_account)
        if rules is None:
            self._keeper.change(wanted, on_done)
            return
        new_rules = check_rules(wanted.name, rules)

        def changed(result: EventHubDescription | ServiceError) -> None:
            if isinstance(result, ServiceError):
                on_done(result)
            else:
                self._namespace.set_hub_rules(wanted.name, new_rules, described(on_done))

        self._keeper.change(wanted, changed)

    def group(self, hub: str, group: str) -> str:
        """The consumer group's name as it was created; ServiceError NOT_FOUND."""
        return self._directory.group(hub, group)

    def delete_hub(self, name: str, on_done: OnHub) -> None:
        self._keeper.delete(name, on_done)

    def revoke_publisher(self, hub: str, publisher: str, on_done: OnHub) -> None:
        """Its links end, and it cannot send until it is restored; what it sent stays."""
        self._keeper.revoke_publisher(hub, publisher, on_done)

    def restore_publisher(self, hub: str, publisher: str, on_done: OnHub) -> None:
        self._keeper.restore_publisher(hub, publisher, on_done)

    def create_group(self, hub: str, group: str, on_done: OnHub, *, user_metadata: str = "") -> None:
        self._namespace.add_consumer_group(hub, group, described(on_done), user_metadata=user_metadata)

    def change_group(self, hub: str, group: str, user_metadata: str | None, on_done: OnHub) -> None:
        """Put another text in the place of a group's; None leaves it. ServiceError NOT_FOUND comes through on_done."""
        self._namespace.change_consumer_group(hub, group, user_metadata, described(on_done))

    def delete_group(self, hub: str, group: str, on_done: OnHub) -> None:
        if fold(group) == fold(DEFAULT_GROUP):
            raise ServiceError(NOT_ALLOWED, f"The consumer group {DEFAULT_GROUP} always exists.")
        self._namespace.remove_consumer_group(hub, group, described(on_done))
