"""One operation of the table, and one call of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from hubweir.gateway.arm.members import Members
from hubweir.gateway.arm.resource_path import ArmPath
from hubweir.gateway.http.exchange import Request, Response

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

BODY_BYTES = 256 * 1024


class RightOf(Enum):
    """Whose right an operation needs: of the service, which the default namespace has, or of the namespace named."""

    SERVICE = "service"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class ArmCall:
    """gateway: of the namespace that the path names; where that is not there, or none is named, the default one.

    names: what stands in the braces of the operation's path.
    """

    gateway: Gateway
    request: Request
    path: ArmPath
    names: dict[str, str]

    async def members(self) -> Members:
        """The body, to be read once."""
        return Members.of_body(await self.request.body(BODY_BYTES, "The body of a request"))


Handler = Callable[[ArmCall], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ArmOperation:
    """provider: "" for both. path: the segments behind the provider, with names in braces."""

    method: str
    provider: str
    path: tuple[str, ...]
    of: RightOf
    handler: Handler
