"""A namespace that a test has for itself: entities made with one call, a clock to set forward, faults to order.

Calls block, and raise ServiceError with the service's refusal. What a queue, a topic or a subscription is given is in
the service's words, as text: `create_queue("orders", LockDuration="PT30S", RequiresSession="true")`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityInfo, EntityType
from hubweir.client.namespace_control import NamespaceControl
from hubweir.namespace.connection_string import ConnectionString

_XML = "application/xml"
_MS = timedelta(milliseconds=1)


class NamespaceClock:
    """The clock of a namespace's service."""

    def __init__(self, control: NamespaceControl) -> None:
        self._control = control

    def now(self) -> datetime:
        """What it shows, in UTC: ask it where a message is scheduled, or a position is a time."""
        return _shown(self._control.state())

    def forward(self, by: float | timedelta, *, ends_tokens: bool = False) -> datetime:
        """Let time pass, in seconds or as a timedelta; what it shows then. ends_tokens: see docs/testing.md."""
        passed = by if isinstance(by, timedelta) else timedelta(seconds=by)
        return _shown(self._control.forward_clock(passed // _MS, ends_tokens=ends_tokens))


class NamespaceOnDemand:
    """See the module's text. connection_string: what official clients take, and it works at once."""

    def __init__(self, name: str, target: ConnectionString) -> None:
        self.name = name
        self.connection_string = target.format()
        self.administration = Administration(target)
        self._control = NamespaceControl(self.administration)
        self.clock = NamespaceClock(self._control)

    def create_queue(self, name: str, **settings: str) -> EntityInfo:
        """Make a queue."""
        return self.administration.create(EntityType.QUEUE, name, settings)

    def create_topic(self, name: str, **settings: str) -> EntityInfo:
        """Make a topic."""
        return self.administration.create(EntityType.TOPIC, name, settings)

    def create_subscription(self, topic: str, name: str, **settings: str) -> EntityInfo:
        """Make a subscription of a topic; it takes every message until its rules say otherwise."""
        return self.administration.create(EntityType.SUBSCRIPTION, f"{topic}/Subscriptions/{name}", settings)

    def create_event_hub(self, name: str, partition_count: int = 1, *, consumer_groups: Iterable[str] = ()) -> None:
        """Make an event hub, with these consumer groups besides `$Default`."""
        body = f"<EventHubDescription><PartitionCount>{partition_count}</PartitionCount></EventHubDescription>"
        self.administration.request("PUT", name, body.encode(), media_type=_XML)
        for group in consumer_groups:
            self.administration.request("PUT", f"{name}/consumergroups/{group}", b"", media_type=_XML)

    def faults(self, **rates: Any) -> dict[str, Any]:
        """Let faults strike by their rates, in the place of those before (NamespaceControl.order_faults); without any
        none strikes. Returns them, with their seed.
        """
        state = self._control.order_faults(**rates) if rates else self._control.end_faults()
        return dict(state["faults"] or {})

    def purge(self, event_hub: str) -> None:
        """Remove all events of a hub; their numbers are not used again."""
        self.administration.purge_event_hub(event_hub)

    def struck(self) -> dict[str, int]:
        """How often each fault struck since they were ordered."""
        faults = self._control.state()["faults"]
        return {} if faults is None else dict(faults["struck"])


def _shown(state: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(state["clock"]["now_ms"] / 1000, UTC)
