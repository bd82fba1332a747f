"""Shared access signatures: making tokens, reading them strictly, checking them.

    SharedAccessSignature sr=<resource>&sig=<signature>&se=<expiry>&skn=<rule>

sr is a percent-encoded URI, se seconds since 1970, skn a rule's name, sig the base64 of HMAC-SHA256 over
`sr` as it stands in the token, a line feed, and se. ("Shared access authorization in Event Hubs".) Encoders differ, so
sr is signed raw, may stand unencoded, and is decoded once only after the signature is known to be good. Everything
else is read strictly: each field once, no unknown field, no digit but 0 to 9, only the one base64 text of a signature
(rules R21, R22). Whoever fails the signature learns nothing else: not whether the rule exists, nor the expiry.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from hubweir.auth.authorization_rule import AuthorizationRule, RuleFinder, Secret, sign, signature_matches
from hubweir.auth.refusal import expired, invalid_audience, invalid_signature, malformed
from hubweir.auth.resource_scope import Scope
from hubweir.auth.verified_token import EXPIRY_LIMIT_S, VerifiedToken
from hubweir.namespace.resource_path import IllegalPath, fold, percent_decode

SCHEME = "SharedAccessSignature"
TOKEN_LIMIT = 4096
_EXPIRY_DIGITS = 12
_FIELDS = frozenset(("sr", "sig", "se", "skn"))
_SIGNATURE_BYTES = 32


@dataclass(frozen=True, slots=True)
class SharedAccessSignature:
    """A token as read: nothing about it is verified. scope: what sr says; rule_name: skn, decoded once."""

    scope: Scope
    expires_at_s: int
    rule_name: str
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str, *, bare_hosts: frozenset[str] = frozenset()) -> SharedAccessSignature:
        """Read a token. Raises AuthRefused MALFORMED for every text that is not exactly one.

        bare_hosts: see Scope.of_signed; tokens made for HTTP may name a host without a scheme.
        """
        fields = _fields(text)
        try:
            rule_name = percent_decode(fields["skn"])
            signature = _signature(percent_decode(fields["sig"]))
            scope = Scope.of_signed(fields["sr"], bare_hosts)
        except IllegalPath as error:
            raise malformed(f"a field is not what it must be: {error}") from None
        if not rule_name or not rule_name.isprintable():
            raise malformed("skn names no rule")
        signed = f"{fields['sr']}\n{fields['se']}".encode("ascii")
        return cls(scope, _expiry(fields["se"]), rule_name, signed, signature)


def is_signature(text: str) -> bool:
    """Whether a token's text says that it is a shared access signature, good or not; what it was declared as, lies."""
    return fold(text[: len(SCHEME) + 1]) == fold(SCHEME) + " "


def make_token(resource_uri: str, key_name: str, key: Secret | str, expires_at_s: int) -> str:
    """A token for a resource, as the official libraries write it. resource_uri is encoded here, once."""
    resource = quote(resource_uri, safe="")
    secret = key if isinstance(key, Secret) else Secret(key)
    signature = base64.b64encode(sign(secret, f"{resource}\n{expires_at_s}".encode("ascii"))).decode("ascii")
    return f"{SCHEME} sr={resource}&sig={quote(signature, safe='')}&se={expires_at_s}&skn={quote(key_name, safe='')}"


def verify(
    token: SharedAccessSignature, find_rule: RuleFinder, now_s: int, *, hosts: Container[str] | None = None
) -> VerifiedToken[SharedAccessSignature]:
    """Check signature, then expiry, then host: in this order, so that only who holds the key learns more.

    find_rule: see authorization_rule.RuleFinder. now_s: wall time in seconds that never runs back (high_water_time).
    hosts: names of this namespace, None for any. Raises AuthRefused.
    """
    rule = _rule_of(token, find_rule)
    if not signature_matches(rule, token.signed, token.signature) or rule is None:
        raise invalid_signature()
    expires_at_ms = token.expires_at_s * 1000
    if token.expires_at_s <= now_s:
        raise expired(expires_at_ms)
    if not token.scope.is_on(hosts):
        raise invalid_audience(token.scope)
    return VerifiedToken(token.scope, rule.rights, expires_at_ms, rule.name, token, hosts)


def is_signed_by(token: SharedAccessSignature, find_rule: RuleFinder) -> bool:
    """Whether the rule that the token names signed it, whatever else is wrong with it. A no takes as long."""
    return signature_matches(_rule_of(token, find_rule), token.signed, token.signature)


def _rule_of(token: SharedAccessSignature, find_rule: RuleFinder) -> AuthorizationRule | None:
    """The rule that skn means at the token's resource; the Python client encodes it twice."""
    # Looked for in any case: time does not tell whether there is such a rule (benchmarks/signature_timing.py).
    is_encoded = "%" in token.rule_name or "+" in token.rule_name
    rule = find_rule(token.rule_name, token.scope)
    if rule is None and is_encoded:
        with suppress(IllegalPath):
            rule = find_rule(percent_decode(token.rule_name.replace("+", " ")), token.scope)
    return rule


def _fields(text: str) -> dict[str, str]:
    if len(text) > TOKEN_LIMIT:
        raise malformed(f"it is longer than {TOKEN_LIMIT} bytes")
    if not (text.isascii() and text.isprintable()):
        raise malformed("it has characters that no token has")
    scheme, _, rest = text.partition(" ")
    if fold(scheme) != fold(SCHEME):
        raise malformed(f"it does not start with '{SCHEME} '")
    fields: dict[str, str] = {}
    for piece in rest.split("&", len(_FIELDS)):
        name, equals, value = piece.partition("=")
        name = fold(name)
        if not equals or name not in _FIELDS or name in fields:
            raise malformed("it must have the fields sr, sig, se, skn, each once")
        fields[name] = value
    if len(fields) < len(_FIELDS):
        raise malformed("it must have the fields sr, sig, se, skn, each once")
    return fields


def _expiry(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _EXPIRY_DIGITS) or (text[0] == "0" and text != "0"):
        raise malformed("se is no time in seconds since 1970")
    seconds = int(text)
    if seconds > EXPIRY_LIMIT_S:
        raise malformed("se is later than the year 9999")
    return seconds


def _signature(text: str) -> bytes:
    """The 32 bytes of a signature, when text is the one base64 text that they have."""
    try:
        signature = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise malformed("sig is no base64") from None
    if len(signature) != _SIGNATURE_BYTES or base64.b64encode(signature).decode("ascii") != text:
        raise malformed("sig is not the base64 of an HMAC-SHA256")
    return signature
