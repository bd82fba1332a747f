"""Connection strings and lines of code that clients paste, for the address that this page was reached at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hubweir.auth.authorization_rule import AuthorizationRule, Secret
from hubweir.namespace.connection_string import AMQP_PORT, AMQPS_PORT, ConnectionString
from hubweir.portal.visit import Visit


@dataclass(frozen=True, slots=True)
class KeyStrings:
    """One key of a policy. plain, tls: connection strings with it."""

    name: str
    value: str = field(repr=False)
    plain: str = field(repr=False)
    tls: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """Where clients find the service. port: every one speaks AMQP and HTTP, plain and over TLS."""

    host: str
    port: int

    def string(self, rule: str, key: Secret, entity: str, *, plain: bool) -> str:
        """The connection string; a port stands there when clients would guess another."""
        usual = AMQP_PORT if plain else AMQPS_PORT
        port = None if self.port == usual else self.port
        return ConnectionString(self.host, port, rule, key, entity_path=entity or None, emulator=plain).format()

    @property
    def custom_endpoint(self) -> str:
        """What official clients need besides, over TLS; "" when they need nothing."""
        return "" if self.port == AMQPS_PORT else f"sb://{self.host}:{self.port}"


def client_place(visit: Visit) -> ClientPlace:
    """Where the browser found it."""
    authority = visit.request.base_uri.partition("://")[2]
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():
        return ClientPlace(authority, 443 if visit.request.base_uri.startswith("https:") else 80)
    return ClientPlace(host, int(port))


def connection_strings(visit: Visit, rule: AuthorizationRule, entity: str) -> Sequence[KeyStrings]:
    """Of each key that a policy has. entity: that it is of, "" for the namespace's."""
    place = client_place(visit)
    keys = (("primary", rule.primary), ("secondary", rule.secondary))
    return [
        KeyStrings(
            name,
            key.reveal(),
            place.string(rule.name, key, entity, plain=True),
            place.string(rule.name, key, entity, plain=False),
        )
        for name, key in keys
        if key
    ]
