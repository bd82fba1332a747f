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

    names: those that lead here. others: those that lead to another namespace of the service. addresses: hosts that lead
    nowhere and are taken all the same. is_open: every host that leads nowhere is taken, as the emulators do.
    """

    names: frozenset[str]
    others: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    is_open: bool = True

    @property
    def all(self) -> frozenset[str]:
        """Every host that is known by name."""
        return self.names | self.addresses

    def __contains__(self, host: object) -> bool:
        return host in self.names or host in self.addresses or (self.is_open and host not in self.others)


def divide(
    given: Mapping[str, Sequence[str]], *, addresses: Sequence[str] = (), closed: frozenset[str] = frozenset()
) -> dict[str, HostNames]:
    """The hosts of each namespace. given: by namespace's name, the host names it was given; the first is the default.

    addresses: what the service listens on: they lead to nobody, and the default namespace always takes them. closed:
    the namespaces that take no host but these. Raises HostNameTaken.
    """
    owner: dict[str, str] = {}
    for namespace, wanted in given.items():
        for name in map(bare_host, wanted):
            other = owner.setdefault(name, namespace)
            if other != namespace:
                raise HostNameTaken(
                    f"the host name {name} leads to the namespace {other} and cannot lead to {namespace} too: "
                    "give each namespace names of its own"
                )
    for namespace in given:
        for name in (fold(namespace), f"{fold(namespace)}.localhost"):
            owner.setdefault(name, namespace)
    nobodys = frozenset(map(bare_host, ("localhost", *addresses))) - owner.keys()
    divided = {}
    for place, namespace in enumerate(given):
        names = frozenset(name for name, of in owner.items() if of == namespace)
        others = frozenset(name for name, of in owner.items() if of != namespace)
        divided[namespace] = HostNames(names, others, nobodys if place == 0 else frozenset(), namespace not in closed)
    return divided


def bare_host(text: str) -> str:
    """The host in what a peer says it wants to reach, such as `Host`: lower case, without port or path."""
    host = fold(text.partition("/")[0].strip())
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    if host.count(":") > 1:
        return f"[{host}]"
    return host.partition(":")[0].removesuffix(".")
