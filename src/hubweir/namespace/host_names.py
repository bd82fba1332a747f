"""The hosts that lead to a namespace: its host names, its own name, and for some whatever leads to no other.

A service of several namespaces divides names among them: a name that was given to one leads there alone. NAME and
NAME.localhost lead to the namespace NAME unless they were given to another. Names are compared without case and
without port. (emulator-config, `Hostnames`; host of the audience of a token)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubweir.errors import HubweirError
from hubweir.namespace.resource_path import fold


class HostNameTaken(HubweirError):
    """Two namespaces want one host name."""


@dataclass(frozen=True, slots=True)
class HostNames:
    """The hosts of one namespace; `in` says whether a resource on a host, in lower case, can be the namespace's.

    names: those that lead here. others: those that lead to another namespace of the service. is_open: a host that
    leads nowhere is taken too, as the emulators do.
    """

    names: frozenset[str]
    others: frozenset[str] = frozenset()
    is_open: bool = True

    def __contains__(self, host: object) -> bool:
        return host in self.names or (self.is_open and host not in self.others)


def divide(
    given: Mapping[str, Sequence[str]], *, addresses: Sequence[str] = (), closed: frozenset[str] = frozenset()
) -> dict[str, HostNames]:
    """The hosts of each namespace. given: by namespace's name, the host names it was given; the first is the default.

    addresses: what the service listens on: they lead to nobody, and the default namespace always takes them. closed:
    the namespaces that take no host but these. Raises HostNameTaken.
    """
    owner: dict[str, str] = {}
    for namespace, names in given.items():
        for name in map(bare_host, names):
            other = owner.setdefault(name, namespace)
            if other != namespace:
                raise HostNameTaken(
                    f"the host name {name} leads to the namespace {other} and cannot lead to {namespace} too: "
                    "give each namespace names of its own"
                )
    for namespace in given:
        for name in (fold(namespace), f"{fold(namespace)}.localhost"):
            owner.setdefault(name, namespace)
    divided = {}
    for place, namespace in enumerate(given):
        names = {name for name, of in owner.items() if of == namespace}
        if place == 0:
            names.update(host for host in map(fold, ("localhost", *addresses)) if host not in owner)
        others = frozenset(name for name, of in owner.items() if of != namespace)
        divided[namespace] = HostNames(frozenset(names), others, namespace not in closed)
    return divided


def bare_host(text: str) -> str:
    """The host in what a peer says it wants to reach, such as `Host`: lower case, without port or path."""
    host = fold(text.partition("/")[0].strip())
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    if host.count(":") == 1:
        host = host.partition(":")[0]
    return host.removesuffix(".")
