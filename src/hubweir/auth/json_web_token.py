"""JSON Web Tokens of one configured issuer: the second kind of token, off unless its keys are set. (RFC 7515, 7519)

Three base64url texts with dots between them: header, claims, signature. Checked in this order, so that only a token
that the issuer signed tells more: form, algorithm (RS256 or ES256, by a key of that kind), signature, `iss`, `aud`,
`nbf`, `exp`. The header's own keys and addresses of keys (jwk, jku, x5u …) are never looked at; `crit` is refused.
`roles` gives rights on the whole namespace:

| role                            | rights |
|---------------------------------|--------|
| Azure Event Hubs Data Owner     | all    |
| Azure Event Hubs Data Sender    | Send   |
| Azure Event Hubs Data Receiver  | Listen |

Written here on `cryptography`, not taken from a library: those at hand read base64 and JSON leniently.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from hubweir.auth.base64url import IllegalBase64, base64url
from hubweir.auth.json_web_key import ES256, RS256, VerificationKey, read_keys
from hubweir.auth.refusal import AuthRefused, RefusalKind, expired, invalid_signature, malformed
from hubweir.auth.resource_scope import Scope
from hubweir.auth.verified_token import EXPIRY_LIMIT_S, VerifiedToken
from hubweir.namespace.error_text import timestamp
from hubweir.namespace.rights import Rights
from hubweir.namespace.strict_json import IllegalJson, read_object

TOKEN_LIMIT = 16 * 1024
_PREFIX = "Azure Event Hubs "
ROLES = {
    prefix + role: rights
    for prefix in (_PREFIX, "")
    for role, rights in (
        ("Data Owner", Rights.ALL),
        ("Data Sender", Rights.SEND),
        ("Data Receiver", Rights.LISTEN),
    )
}
_TYPES = ("JWT", "AT+JWT")
# What every token of a whole namespace covers; which hosts are the namespace's is checked with the audience.
_EVERYWHERE = Scope("", ())


@dataclass(frozen=True, slots=True)
class JsonWebToken:
    """A token as read: nothing about it is verified. claims: its second part, not decoded."""

    algorithm: str
    key_id: str | None
    claims: str = field(repr=False)
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> JsonWebToken:
        """Read a token. Raises AuthRefused MALFORMED."""
        if len(text) > TOKEN_LIMIT:
            raise malformed(f"it is longer than {TOKEN_LIMIT} bytes")
        parts = text.split(".", 3)
        if len(parts) != 3:
            raise malformed("it is neither a shared access signature nor a JSON Web Token")
        try:
            header, signature = read_object(base64url(parts[0])), base64url(parts[2])
        except (IllegalBase64, IllegalJson) as error:
            raise malformed(f"its header or signature: {error}") from None
        algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
        if algorithm not in (RS256, ES256):
            raise malformed(f"its algorithm is not one of {RS256}, {ES256}")
        if not isinstance(kind, str) or kind.upper() not in _TYPES:
            raise malformed("its typ is not JWT")
        if "crit" in header or not (key_id is None or isinstance(key_id, str)):
            raise malformed("its header has a crit, or a kid that is no text")
        return cls(str(algorithm), key_id, parts[1], f"{parts[0]}.{parts[1]}".encode("ascii", "replace"), signature)


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Whose tokens are taken: the `iss` they must have, the `aud` they must be for, and the keys that sign them."""

    issuer: str
    audience: str
    keys: tuple[VerificationKey, ...]

    @classmethod
    def of_file(cls, issuer: str, audience: str, keys: bytes) -> TokenIssuer:
        """keys: what the file of keys holds. Raises BadKeys."""
        return cls(issuer, audience, read_keys(keys))

    def verify(
        self, token: JsonWebToken, now_s: int, *, hosts: Container[str] | None = None
    ) -> VerifiedToken[JsonWebToken]:
        """What a token proves. now_s, hosts: as for shared_access_signature.verify. Raises AuthRefused."""
        if not any(key.verifies(token.signed, token.signature) for key in self._keys_for(token)):
            raise invalid_signature()
        try:
            claims = read_object(base64url(token.claims))
        except (IllegalBase64, IllegalJson) as error:
            raise malformed(f"its claims: {error}") from None
        if claims.get("iss") != self.issuer:
            raise AuthRefused(
                RefusalKind.INVALID_ISSUER, "The token is of another issuer than the one that is trusted."
            )
        if not self._is_for_us(claims.get("aud")):
            raise AuthRefused(RefusalKind.INVALID_AUDIENCE, f"The token is not for the audience '{self.audience}'.")
        starts_s, ends_s = _time(claims, "nbf", 0), _time(claims, "exp", None)
        if starts_s > now_s:
            text = f"The token is good from {timestamp(starts_s * 1000)}Z on."
            raise AuthRefused(RefusalKind.NOT_YET_VALID, text)
        if ends_s <= now_s:
            raise expired(ends_s * 1000)
        return VerifiedToken(_EVERYWHERE, _rights(claims.get("roles")), ends_s * 1000, "", token, hosts)

    def _keys_for(self, token: JsonWebToken) -> tuple[VerificationKey, ...]:
        """The keys of the token's algorithm that it may mean: a key with a name is meant by that name only."""
        return tuple(
            key
            for key in self.keys
            if key.algorithm == token.algorithm
            and (key.key_id is None or token.key_id is None or key.key_id == token.key_id)
        )

    def _is_for_us(self, audience: object) -> bool:
        """With or without a slash at the end; one of several is enough."""
        wanted = self.audience.removesuffix("/")
        given = audience if isinstance(audience, list) else [audience]
        return any(isinstance(one, str) and one.removesuffix("/") == wanted for one in given)


def _time(claims: dict[str, object], name: str, default: int | None) -> int:
    """A time in whole seconds since 1970; one without default must be there."""
    value = claims.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= EXPIRY_LIMIT_S:
        raise malformed(f"its {name} is no time in whole seconds since 1970")
    return value


def _rights(roles: object) -> Rights:
    """What roles give together; a role that is not known gives nothing."""
    if roles is not None and not (isinstance(roles, list) and all(isinstance(role, str) for role in roles)):
        raise malformed("its roles are no list of texts")
    rights = Rights.NONE
    for role in roles or ():
        rights |= ROLES.get(role, Rights.NONE)
    return rights
