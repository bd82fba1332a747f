"""The session of a person who is signed in: a cookie that any process can check, because a rule's own key signs it.

    base64url(JSON of PortalSession) "." base64url(HMAC-SHA256(key of the rule, CONTEXT + the text before the dot))

No process remembers a session. The rule is read from the catalog at each request, so a session ends when the key that
signed it is renewed and when its rule is deleted, and it may do what the rule allows now. A session that rests on a
shared access signature holds that token, too, and ends with it. One that rests on a JSON Web Token has no rule: it
holds the token and is signed with the token's text, since whoever has that could sign in anew. Idle for IDLE_MS, or
LIFETIME_MS after the sign-in, it is over. CONTEXT keeps the two uses of a key apart: no signed session is a token, and
no token is a session.

Signing out empties the cookie; a copy of it that somebody took means nothing from then on (sign_in_ledger.py).
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass, field, replace

import msgspec

from hubweir.auth.authorization_rule import AuthorizationRule, Secret, find_rule, sign, signature_matches
from hubweir.auth.refusal import AuthRefused
from hubweir.auth.shared_access_signature import is_signature
from hubweir.auth.sign_in_ledger import LIFETIME_MS
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.namespace.address import address_at
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights

IDLE_MS = 30 * 60_000
# A cookie is written anew when its newest use is this old, and not at each request.
RENEW_MS = 60_000
# Clocks of one service are one clock; a use in the future means that it was set back.
FUTURE_MS = 60_000
COOKIE_LIMIT = 6 * 1024  # a token has 4 KiB at most
NONCE_BYTES = 18
CONTEXT = b"hubweir portal session\n"


class PortalSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the cookie says. rule: "" for a JSON Web Token. entity: that the rule is of, as created; "" for none.

    token: "" for a key. nonce: sent back by every form, so that no other site can make one (CSRF).
    """

    namespace: str
    rule: str
    entity: str
    token: str
    signed_in_ms: int
    used_ms: int
    nonce: str


@dataclass(frozen=True, slots=True)
class Identity:
    """A session that was found good, and what it may do now. path: all rights are for this and what lies below it.

    key: of its rule, the one that signed its cookie; the next one of the session is signed with it, too.
    """

    session: PortalSession
    gateway: Gateway
    key: Secret = field(repr=False)
    rights: Rights
    path: tuple[str, ...]

    def may(self, right: Rights, name: str = "") -> bool:
        """Whether it has the right (of several, any) on the entity of that name, or with "" on the namespace."""
        segments = tuple(fold(name).split("/")) if name else ()
        return bool(self.rights & right) and segments[: len(self.path)] == self.path

    @property
    def name(self) -> str:
        """What people call whoever is signed in."""
        return self.session.rule or "JSON Web Token"

    @property
    def place(self) -> str:
        """The entity that it is for; "" for all of the namespace."""
        return self.session.entity or "/".join(self.path)


def write_cookie(session: PortalSession, key: Secret) -> str:
    """The cookie's value, signed with a key of the session's rule."""
    text = _encode(msgspec.json.encode(session))
    return f"{text}.{_encode(sign(key, CONTEXT + text.encode()))}"


def read_cookie(value: str, process: GatewayProcess) -> Identity | None:
    """Who a cookie proves to be; None: nobody, whatever the reason."""
    text, dot, signature_text = value.partition(".")
    if len(value) > COOKIE_LIMIT or not dot:
        return None
    try:
        session = msgspec.json.decode(_decode(text), type=PortalSession)
        signature = _decode(signature_text)
    except (msgspec.DecodeError, ValueError):
        return None
    gateway = next((each for each in process.gateways if each.settings.namespace == session.namespace), None)
    if gateway is None:
        return None
    now_ms = gateway.env.now_ms()
    is_old = now_ms - session.used_ms > IDLE_MS or now_ms - session.signed_in_ms > LIFETIME_MS
    if is_old or session.used_ms - now_ms > FUTURE_MS:
        return None
    if not session.rule:
        return _by_json_web_token(session, gateway, text, signature)
    rule = rule_of(gateway, session.entity, session.rule)
    key = _key_that_signed(rule, CONTEXT + text.encode(), signature)
    if key is None or rule is None:
        return None
    if not session.token:
        path = tuple(fold(session.entity).split("/")) if session.entity else ()
        return Identity(session, gateway, key, rule.rights, path)
    try:
        verified = gateway.authorization.verify(session.token)
    except AuthRefused:
        return None
    return Identity(session, gateway, key, verified.rights, verified.scope.segments)


def _by_json_web_token(session: PortalSession, gateway: Gateway, text: str, signature: bytes) -> Identity | None:
    if is_signature(session.token) or not session.token:
        return None
    key = Secret(session.token)
    if not hmac.compare_digest(sign(key, CONTEXT + text.encode()), signature):
        return None
    try:
        verified = gateway.authorization.verify(session.token)
    except AuthRefused:
        return None
    return Identity(session, gateway, key, verified.rights, verified.scope.segments)


def key_of(rule: AuthorizationRule, shown: Secret | None = None) -> Secret:
    """The key that signs a session of this rule. shown: the one that its owner gave; None: they gave a token."""
    return shown or rule.primary or rule.secondary


def rule_of(gateway: Gateway, entity: str, name: str) -> AuthorizationRule | None:
    """The rule of that name of an entity alone, or with "" of the namespace."""
    if not entity:
        return find_rule(name, gateway.namespace.description.rules)
    at = address_at(tuple(entity.split("/")), gateway.namespace.find_any)
    found = None if at is None or at.part else at.entity
    return find_rule(name, () if found is None else found.description.rules)


def _key_that_signed(rule: AuthorizationRule | None, text: bytes, signature: bytes) -> Secret | None:
    """Which of a rule's keys did; None: neither, or there is no rule. Both are always tried."""
    no_key = Secret("")
    by_primary = signature_matches(None if rule is None else replace(rule, secondary=no_key), text, signature)
    by_secondary = signature_matches(None if rule is None else replace(rule, primary=no_key), text, signature)
    if rule is None or not (by_primary or by_secondary):
        return None
    return rule.primary if by_primary else rule.secondary


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """The bytes of the one text that they have; ValueError for any other."""
    data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(data) != text:
        raise ValueError("it is not the base64 that is written here")
    return data
