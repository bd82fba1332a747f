"""The proof that a good token gives, whichever kind it is of."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubweir.auth.resource_scope import Scope
from hubweir.namespace.rights import Rights

# 9999-12-31T23:59:59Z, the last second most calendars have. Milliseconds in place of seconds fall over it.
EXPIRY_LIMIT_S = 253_402_300_799

Kind = TypeVar("Kind", covariant=True)


@dataclass(frozen=True, slots=True)
class VerifiedToken(Generic[Kind]):
    """Rights on everything that scope covers, until expires_at_ms.

    rule_name: "" where no rule signed it. token: as it was read, to be verified again when rules or keys change.
    """

    scope: Scope
    rights: Rights
    expires_at_ms: int
    rule_name: str
    token: Kind
    hosts: Container[str] | None = None

    def covers(self, audience: Scope) -> bool:
        """True when the audience lies on this namespace and under the token's own resource."""
        return audience.is_on(self.hosts) and self.scope.covers(audience)
