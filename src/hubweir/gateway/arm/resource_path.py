"""The path of a resource as Azure Resource Manager writes it.

    /subscriptions/{id}/resourceGroups/{group}/providers/{provider}/namespaces/{name}/{type}/{name}…/{action}

Of subscription and resource group there is one of any name here: they are told back as they came. Words come in any
case; names keep theirs. What stands behind the provider is matched by operations.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from hubweir.namespace.resource_path import fold

EVENT_HUB, SERVICE_BUS = "Microsoft.EventHub", "Microsoft.ServiceBus"
PROVIDERS = {fold(EVENT_HUB): EVENT_HUB, fold(SERVICE_BUS): SERVICE_BUS}


@dataclass(frozen=True, slots=True)
class ArmPath:
    """group: of resources; "" where the path is for a whole subscription. rest: the segments behind the provider."""

    subscription: str
    group: str
    provider: str
    rest: tuple[str, ...]

    def id_of(self, *rest: str) -> str:
        """The id of a resource of this group: pairs of type and name behind the provider."""
        group = f"/resourceGroups/{quote(self.group or 'default', safe='')}"
        path = "/".join(quote(segment, safe="") for segment in rest)
        return f"/subscriptions/{quote(self.subscription, safe='')}{group}/providers/{self.provider}/{path}"


def is_arm(segments: Sequence[str]) -> bool:
    """Whether a request is for this door: no entity begins with the word, which has a meaning of its own."""
    return len(segments) > 2 and fold(segments[0]) == "subscriptions"


def parse_arm(segments: Sequence[str]) -> ArmPath | None:
    """The path; None when it is none of a provider that is here. segments: see is_arm."""
    subscription, rest, group = segments[1], segments[2:], ""
    if fold(rest[0]) == "resourcegroups" and len(rest) > 2:
        group, rest = rest[1], rest[2:]
    if fold(rest[0]) != "providers" or len(rest) < 3 or fold(rest[1]) not in PROVIDERS:
        return None
    return ArmPath(subscription, group, PROVIDERS[fold(rest[1])], tuple(rest[2:]))
