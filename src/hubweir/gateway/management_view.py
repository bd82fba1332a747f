"""Shows event hubs, their groups, and a partition's figures to both management doors.

$management and the HTTP door (ATOM) use it; what they change goes to catalog_keeper.py. Authorisation is the door's.
Reads of a partition always ask its owner, so two reads without a send between are equal, whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hubweir.broker.commands.capture import AskCaptureState, CaptureState
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.partition import AskPartitionInfo, PartitionInfo
from hubweir.errors import ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.directory import Directory
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.namespace import Namespace

A = TypeVar("A", bound=Answer)
OnAsked = Callable[[A | ServiceError], None]


class ManagementView:
    """See the module's text. Every on_done is called once, on the loop, with a value or a ServiceError."""

    def __init__(self, namespace: Namespace, directory: Directory) -> None:
        self._namespace = namespace
        self._directory = directory

    def hub(self, name: str) -> EventHubDescription:
        """The hub; ServiceError NOT_FOUND."""
        return self._directory.hub(name).description

    def hubs(self) -> tuple[EventHubDescription, ...]:
        """All hubs that are served, in the order they were made."""
        return tuple(hub.description for hub in self._namespace.entities(EventHubDescription))

    def partition_info(self, hub: str, partition_id: str, on_done: OnAsked[PartitionInfo]) -> None:
        """The partition's bounds as its owner has them now. Raises ServiceError when there is no such partition."""
        self._ask(hub, partition_id, AskPartitionInfo, PartitionInfo, on_done)

    def capture_state(self, hub: str, partition_id: str, on_done: OnAsked[CaptureState]) -> None:
        """How far capture of a partition is. Raises ServiceError when there is no such partition."""
        self._ask(hub, partition_id, AskCaptureState, CaptureState, on_done)

    def group(self, hub: str, group: str) -> str:
        """The consumer group's name as it was created; ServiceError NOT_FOUND."""
        return self._directory.group(hub, group)

    def _ask(
        self, hub: str, partition_id: str, command: Callable[[str], Command], kind: type[A], on_done: OnAsked[A]
    ) -> None:
        """Ask the owner of a partition. kind: of the answer."""
        place = self._directory.partition(hub, partition_id)

        def answered(answer: Answer) -> None:
            on_done(answer if isinstance(answer, kind) else error_of(answer))

        place.broker.submit(command(place.log_id), answered)
