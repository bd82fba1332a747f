"""The resource that a token covers: a host and a path, compared segment by segment.

`/hub1` covers `/hub1/partitions/0` but neither `/hub10` nor `/hub`; the empty path covers the whole namespace. Scheme
and port mean nothing, case means nothing (A to Z only), and everything is decoded exactly once (rule R21; "Shared
access authorization in Event Hubs"). Which hosts belong to the namespace is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from hubweir.namespace.error_text import entity_uri
from hubweir.namespace.resource_path import IllegalPath, ResourcePath, fold, parse_path, percent_decode


@dataclass(frozen=True, slots=True)
class Scope:
    """A resource of a namespace. host and segments are in lower case; no segments: the namespace itself."""

    host: str
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, uri: str) -> Scope:
        """The scope of an audience, as a client names it in put-token. It is decoded once, then cut.

        Raises IllegalPath when it is no absolute URI, or holds what could name two things.
        """
        return cls._of(parse_path(uri))

    @classmethod
    def of_signed(cls, resource: str, bare_hosts: frozenset[str] = frozenset()) -> Scope:
        """The scope of a token's `sr`, as it stands in the token: decoded once, as a whole. Raises IllegalPath.

        bare_hosts: names in lower case that may stand without a scheme in front. Any other bare word is no host: it
        may be meant as the name of a hub, and would cover the whole namespace as one.
        A query behind the path of an https URI says nothing about the resource.
        """
        text = _without_query(percent_decode(resource))
        if fold(text.partition("/")[0].partition(":")[0]) in bare_hosts and "://" not in text:
            text = f"https://{text}"
        return cls._of(parse_path(text, decoded=True))

    def covers(self, other: Scope) -> bool:
        """True when other's path is this one or lies below it. Hosts are not compared: see is_on."""
        return other.segments[: len(self.segments)] == self.segments

    def is_on(self, hosts: Container[str] | None) -> bool:
        """True when the host is one of hosts (lower case, without ports); None: every host is the namespace's."""
        return hosts is None or self.host in hosts

    @property
    def uri(self) -> str:
        """How texts name the resource: `sb://host/hub/…`."""
        return entity_uri(self.host, "/".join(self.segments))

    @classmethod
    def _of(cls, path: ResourcePath) -> Scope:
        if path.host is None:
            raise IllegalPath("it is not absolute: it has no scheme and host")
        return cls(path.host, tuple(fold(segment) for segment in path.segments))


def _without_query(uri: str) -> str:
    """The URI up to the `?` behind its path: @azure/service-bus 7.9.5 signs each management request with its query."""
    path, mark, query = uri.partition("?")
    is_request = fold(path).startswith("https://") and path.count("/") > 2
    return path if mark and is_request and "#" not in query else uri
