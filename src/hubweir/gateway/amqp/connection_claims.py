"""Authorization of one connection: stores its tokens, checks attaches and requests, detaches links whose token ended.

A link is checked at its attach, with every read of deliveries, and when a claim has ended; it outlives its claim by the
grace of auth/claims.py, so that a renewal under way is not too late. A new attach does not. The connection stays.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from hubweir.amqp.transport.events import SaslInitiated
from hubweir.auth.claims import EVERYTHING, FOR_EVER, GRACE_MS, Claims
from hubweir.auth.plain import plain_key, plain_name
from hubweir.auth.refusal import invalid_audience
from hubweir.auth.resource_scope import Scope
from hubweir.drivers.amqp_driver import AmqpDriver
from hubweir.env import Env, Timer
from hubweir.errors import UNAUTHORIZED, ServiceError
from hubweir.gateway.amqp.namespace_choice import NamespaceChoice
from hubweir.gateway.authorization import Authorization
from hubweir.namespace.resource_path import IllegalPath
from hubweir.namespace.rights import Rights

# MSSBCBS is ANONYMOUS under another name: rights come later, over $cbs.
WITHOUT_PROOF = ("ANONYMOUS", "MSSBCBS")


class Lapse(NamedTuple):
    """Why links are not covered any more: what stands before what a link lacks, and what stands behind."""

    before: str
    behind: str


# Clients match what begins these texts.
EXPIRED = Lapse("ExpiredToken: The token is expired. Put a new one on $cbs in time. ", "")
_TAKEN_BACK = Lapse("", " The token was taken back by delete-token: put another one on $cbs, and attach again.")
_CHANGED = Lapse(
    "",
    " The authorization rule or the key that it rested on was changed or removed: "
    "put a token that is good now on $cbs, and attach again.",
)
_CERTIFICATE_ENDED = Lapse("", " The client's certificate has expired: connect again with one that is valid.")


class ConnectionClaims:
    """See the module's text. on_lapse: claims are gone, and why: see which links are still covered."""

    def __init__(self, choice: NamespaceChoice, env: Env, on_lapse: Callable[[Lapse], None]) -> None:
        self._choice = choice
        self._env = env
        self._on_lapse = on_lapse
        self._claims = Claims()
        self._timer: Timer | None = None
        self.changes = 0  # how often the claims may have become others

    @property
    def _authorization(self) -> Authorization:
        return self._choice.gateway.authorization

    @property
    def rules(self) -> tuple[str, ...]:
        """As Claims.rules."""
        return self._claims.rules

    def prove(self, said: SaslInitiated, driver: AmqpDriver | None) -> None:
        """Take the proof of a SASL mechanism, for the whole connection; ServiceError when it is none, or not here.

        driver: of the connection, for what its transport knows of the peer.
        """
        if said.mechanism in WITHOUT_PROOF:
            return
        self.changes += 1
        choice = self._choice
        if said.mechanism == "PLAIN":
            gateway = choice.of_key(plain_name(said.response), plain_key(said.response), said.hostname)
            if not gateway.settings.plain_without_tls and (driver is None or not driver.is_private):
                raise ServiceError(UNAUTHORIZED, "SASL PLAIN shows a key: over the network it needs TLS.")
            self._claims.grant(gateway.authorization.plain(said.response))
        elif said.mechanism == "EXTERNAL":
            certificate = None if driver is None else driver.peer_certificate
            name = "" if certificate is None else certificate.name or ""
            gateway = choice.of_rule(name, said.hostname)
            self._claims.grant(gateway.authorization.external(certificate, said.response))
            self._plan_sweep()
        else:
            raise ServiceError(UNAUTHORIZED, f"The SASL mechanism {said.mechanism!r} is not known.")
        choice.proved(gateway)

    def put(self, token: str, audience: str) -> bool:
        """Take a token for an audience; return what Claims.put does.

        ServiceError as Authorization.put_token and NamespaceChoice.proved.
        """
        gateway = self._choice.of_token(token, audience)
        self.changes += 1
        replaces = gateway.authorization.put_token(self._claims, token, audience)
        self._choice.proved(gateway)
        self._plan_sweep()
        return replaces

    def delete(self, audience: str) -> None:
        """Forget the token for an audience: links that no other claim covers end now. An unknown one is nothing."""
        self.changes += 1
        with suppress(IllegalPath):
            self._claims.delete(Scope.parse(audience))
            self._on_lapse(_TAKEN_BACK)
            self._plan_sweep()

    def require(self, right: Rights, resource: Scope) -> None:
        """Raise ServiceError UNAUTHORIZED, with the text that clients match, unless a claim gives the right now."""
        self._claims.check(right, resource, self._authorization.now_ms())

    def authorize_request(self, rights: Rights, path: str, token: str | None) -> None:
        """Raise ServiceError unless one of these rights at this path is proved: by the request's own token, if any.

        A token in a request counts for that request alone.
        """
        if token is None:
            self.require(rights, self._authorization.scope_of(path))
        else:
            gateway = self._choice.of_token(token)
            resource = gateway.authorization.scope_of(path)
            verified = gateway.authorization.verify(token)
            if not verified.covers(resource):
                raise invalid_audience(resource)
            if not verified.rights & rights:
                raise ServiceError(UNAUTHORIZED, f"The token's rule has not the rights for '{resource.uri}'.")
            self._choice.proved(gateway)

    def covered_until_ms(self, right: Rights, resource: Scope, why: Lapse) -> int:
        """Until when a link that was attached by this right may stand, grace included, unless `changes` moves before.

        Milliseconds of Authorization.now_ms. ServiceError UNAUTHORIZED: why it must end now.
        """
        try:
            until_ms = self._claims.check(right, resource, self._authorization.now_ms() - GRACE_MS)
        except ServiceError as refusal:
            raise ServiceError(UNAUTHORIZED, f"{why.before}{refusal.text}{why.behind}") from None
        return min(until_ms + GRACE_MS, FOR_EVER)

    def recheck(self) -> None:
        """Rules or keys changed: links whose claim is gone end now."""
        self.changes += 1
        if self._authorization.recheck(self._claims):
            self._on_lapse(_CHANGED)

    def close(self) -> None:
        """The connection is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _plan_sweep(self) -> None:
        self.close()
        deadline_ms = self._claims.next_deadline_ms()
        if deadline_ms is not None:
            delay_ms = max(1, deadline_ms - self._authorization.now_ms())
            self._timer = self._env.call_later(delay_ms, self._sweep)

    def _sweep(self) -> None:
        """Detach the links whose claims have ended."""
        self._timer = None
        self.changes += 1
        ended = self._claims.expired(self._authorization.now_ms())
        if ended:
            self._on_lapse(_CERTIFICATE_ENDED if ended == [EVERYTHING] else EXPIRED)
        self._plan_sweep()
