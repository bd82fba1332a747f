"""Lists where a person may go: the pages of the namespace, and the tabs of an entity, as far as their rights go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubweir.namespace.entity import AnyEntity, EntityKind
from hubweir.namespace.rights import Rights


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """A link to a page. kinds: of the entities that have it; none: it is a page of the namespace."""

    page: str
    label: str
    right: Rights
    kinds: Sequence[EntityKind] = ()


NAMESPACE_PAGES = (
    NavigationItem("scale", "Scale", Rights.MANAGE),
    NavigationItem("charts", "Charts", Rights.MANAGE),
    NavigationItem("policies", "Shared access policies", Rights.MANAGE),
    NavigationItem("connections", "Connections", Rights.MANAGE),
    NavigationItem("alarms", "Alarms", Rights.MANAGE),
    NavigationItem("namespaces", "Namespaces", Rights.MANAGE),
)
_ALL = tuple(EntityKind)
_STORING = (EntityKind.EVENT_HUB, EntityKind.QUEUE, EntityKind.TOPIC)
TABS = (
    NavigationItem("entity", "Overview", Rights.ALL, _ALL),
    NavigationItem("events", "Data explorer", Rights.LISTEN, (EntityKind.EVENT_HUB,)),
    NavigationItem("messages", "Messages", Rights.LISTEN, (EntityKind.QUEUE, EntityKind.SUBSCRIPTION)),
    NavigationItem("send", "Send", Rights.SEND, _STORING),
    NavigationItem("consumer-groups", "Consumer groups", Rights.MANAGE, (EntityKind.EVENT_HUB,)),
    NavigationItem("readers", "Readers", Rights.MANAGE, (EntityKind.EVENT_HUB,)),
    NavigationItem("capture", "Capture", Rights.MANAGE, (EntityKind.EVENT_HUB,)),
    NavigationItem("entity-charts", "Charts", Rights.MANAGE, _ALL),
    NavigationItem("rules", "Filters", Rights.MANAGE, (EntityKind.SUBSCRIPTION,)),
    NavigationItem("connect", "Connect", Rights.ALL, _ALL),
    NavigationItem("entity-policies", "Shared access policies", Rights.MANAGE, _STORING),
    NavigationItem("settings", "Settings", Rights.MANAGE, _ALL),
)


def tabs_of(entity: AnyEntity, may: Callable[[Rights, str], bool]) -> list[NavigationItem]:
    """The tabs of an entity. may: whether somebody has a right on the entity of a name."""
    return [item for item in TABS if entity.kind in item.kinds and may(item.right, entity.name)]
