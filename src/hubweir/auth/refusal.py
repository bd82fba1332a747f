"""Reasons for which a token of either kind is refused, in the words that clients match."""

from __future__ import annotations

from enum import Enum

from hubweir.auth.resource_scope import Scope
from hubweir.errors import AUTH_FAILED, ServiceError
from hubweir.namespace.error_text import timestamp


class RefusalKind(Enum):
    """Why a token is refused. The value starts the text that clients match."""

    MALFORMED = "MalformedToken"
    EXPIRED = "ExpiredToken"
    INVALID_SIGNATURE = "InvalidSignature"
    INVALID_AUDIENCE = "InvalidAudience"
    INVALID_ISSUER = "InvalidIssuer"  # this and the next: of JSON Web Tokens only
    NOT_YET_VALID = "NotYetValidToken"


class AuthRefused(ServiceError):
    """A token that is not taken: condition AUTH_FAILED, and the kind of refusal."""

    def __init__(self, kind: RefusalKind, text: str) -> None:
        super().__init__(AUTH_FAILED, f"{kind.value}: {text}")
        self.kind = kind


def malformed(why: str) -> AuthRefused:
    """A text that is no token. why: what is wrong with it, never a part of it."""
    return AuthRefused(RefusalKind.MALFORMED, f"The token cannot be read: {why}.")


def invalid_signature() -> AuthRefused:
    """Nobody whom we know signed it; nothing else is told, not even whether there is such a rule."""
    return AuthRefused(RefusalKind.INVALID_SIGNATURE, "The token has an invalid signature.")


def expired(at_ms: int) -> AuthRefused:
    """A token that was good until at_ms."""
    return AuthRefused(
        RefusalKind.EXPIRED, f"The token is expired. Expiration time: {timestamp(at_ms)}Z. Put a new one."
    )


def invalid_audience(audience: Scope) -> AuthRefused:
    """A token that is good, but not for this resource."""
    return AuthRefused(RefusalKind.INVALID_AUDIENCE, f"The token does not cover the audience '{audience.uri}'.")
