"""SASL PLAIN with a rule's name and key: one authorisation for the whole connection, no token needed. (RFC 4616)"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.auth.authorization_rule import AuthorizationRule, Secret, key_matches
from hubweir.auth.connection_grant import ConnectionGrant
from hubweir.errors import UNAUTHORIZED, ServiceError

# The SASL frame that carries it may have 512 bytes.
RESPONSE_LIMIT = 512


def check_plain(response: bytes, find_rule: Callable[[str], AuthorizationRule | None]) -> ConnectionGrant:
    """The rule whose name and key an initial response (authorisation id, NUL, name, NUL, key) carries.

    find_rule: a rule of the namespace by its name. The authorisation id must be empty or the name again. Raises
    ServiceError UNAUTHORIZED, with the same text whatever was wrong.
    """
    parts = response.split(b"\0") if len(response) <= RESPONSE_LIMIT else []
    rule, key = None, ""
    if len(parts) == 3 and parts[1] and parts[0] in (b"", parts[1]):
        rule, key = find_rule(_text(parts[1])), _text(parts[2])
    if not key_matches(rule, Secret(key)) or rule is None:
        raise ServiceError(UNAUTHORIZED, "The rule name or key given to SASL PLAIN is not right.")
    return ConnectionGrant(rule, Secret(key))


def plain_name(response: bytes) -> str:
    """The rule's name in an initial response, which proves nothing yet; "" when it is no such response."""
    parts = response.split(b"\0", 3)
    return _text(parts[1]) if len(parts) == 3 else ""


def plain_key(response: bytes) -> Secret:
    """The key in an initial response, which proves nothing yet; empty when it is no such response."""
    parts = response.split(b"\0", 3)
    return Secret(_text(parts[2]) if len(parts) == 3 else "")


def _text(part: bytes) -> str:
    try:
        return part.decode("utf-8")
    except UnicodeDecodeError:
        return ""
