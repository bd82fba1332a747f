"""Tokens against the catalog: which rule signed one, what it may do, and what time it is for tokens.

A token is what its text says it is: a shared access signature, or else, when an issuer is configured, a JSON Web Token.
One table says which right an operation needs (auth/claims.py); here stands how a token is found good: by the rules of
the entity that its resource names, then of the namespace. Existence of an entity is told only to the holder of a good
token that covers it (rule R23). Time for tokens never runs back (rule R20).

Whoever signs a token knows the machine's time alone. So a token is good by that time when it is shown, and from then on
its lifetime passes on the service's clock of tokens, which a test may set forward: that ends tokens, and new ones of
the same clients are good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hubweir.auth.authorization_rule import AuthorizationRule, Secret, find_rule, key_matches
from hubweir.auth.claims import Claims, Token
from hubweir.auth.connection_grant import ConnectionGrant
from hubweir.auth.external import check_external
from hubweir.auth.high_water_time import HighWaterTime
from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.auth.json_web_token import JsonWebToken
from hubweir.auth.plain import check_plain
from hubweir.auth.refusal import invalid_audience, invalid_signature
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import SharedAccessSignature, is_signature, is_signed_by, verify
from hubweir.auth.verified_token import VerifiedToken
from hubweir.drivers.tls import PeerCertificate
from hubweir.env import Env
from hubweir.event_hub.publisher_policy import check_publisher
from hubweir.namespace.address import address_at, not_found
from hubweir.namespace.entity import of_kind
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.resource_path import IllegalPath, fold, parse_path
from hubweir.queue.queue_part import parse_queue_part


class Authorization:
    """Checks tokens for one namespace.

    hosts: of the namespace, as they are now. is_ours: whether a token belongs to this namespace, and not to another of
    the service. issuer: whose JSON Web Tokens are taken; None: nobody's.
    """

    def __init__(
        self,
        namespace: Namespace,
        env: Env,
        *,
        host_name: str,
        hosts: HostNames,
        is_ours: Callable[[SharedAccessSignature], bool],
        issuer: IssuerKeys | None = None,
    ) -> None:
        self._namespace = namespace
        self._env = env
        self._time = HighWaterTime()
        self._host_name = host_name
        self.hosts = hosts
        self._is_ours = is_ours
        self._issuer = issuer

    def now_ms(self) -> int:
        """The time that claims are checked against: it never runs back."""
        return self._time.observe(self._env.machine.now_ms()) + self._env.ahead.tokens_ms

    def _machine_ms(self) -> int:
        return self.now_ms() - self._env.ahead.tokens_ms

    def verify(self, token: str) -> VerifiedToken[Token]:
        """What a token proves; AuthRefused with the text that clients match."""
        if self._issuer is not None and not is_signature(token):
            verified: VerifiedToken[Token] = self._issuer.verify(
                JsonWebToken.parse(token), self._machine_ms() // 1000, hosts=self.hosts
            )
        else:
            verified = self._verify(SharedAccessSignature.parse(token, bare_hosts=self.hosts.all))
        return self._by_service_clock(verified)

    def _by_service_clock(self, verified: VerifiedToken[Token]) -> VerifiedToken[Token]:
        ahead_ms = self._env.ahead.tokens_ms
        return replace(verified, expires_at_ms=verified.expires_at_ms + ahead_ms) if ahead_ms else verified

    def put_token(self, claims: Claims, token: str, audience: str) -> bool:
        """Take a token for an audience into a connection's claims; return what Claims.put does.

        Raises AuthRefused; and, when the token is good and covers the audience, ServiceError NOT_FOUND for an entity
        that is not there, UNAUTHORIZED for a publisher that was revoked.
        """
        verified = self.verify(token)
        try:
            scope = Scope.parse(audience)
        except IllegalPath:
            raise invalid_audience(self.scope_of(audience)) from None
        if verified.covers(scope):
            self._check_entity(scope)
        return claims.put(scope, verified)

    def plain(self, response: bytes) -> ConnectionGrant:
        """What the rule name and key that SASL PLAIN carried prove; ServiceError UNAUTHORIZED when nothing."""
        return check_plain(response, self._namespace_rule)

    def external(self, certificate: PeerCertificate | None, response: bytes) -> ConnectionGrant:
        """What a client's certificate proves; None: it showed none. ServiceError UNAUTHORIZED when nothing."""
        name, ends_at_ms = (None, 0) if certificate is None else (certificate.name, certificate.ends_at_ms)
        ends_at_ms += self._env.ahead.tokens_ms
        return check_external(name, ends_at_ms, response, self._namespace_rule, self.now_ms())

    def recheck(self, claims: Claims) -> bool:
        """After rules or keys changed: take the claims of a connection anew; True when any changed."""
        return bool(claims.recheck(self._verify_again, self._namespace_rule))

    def scope_of(self, address: str) -> Scope:
        """The scope of an address as a peer wrote it, whether something is there or not.

        An address that could name two things gets the scope of the namespace: only whoever may do everything there
        is told what is wrong with it.
        """
        try:
            segments = parse_path(address).segments
        except IllegalPath:
            segments = ()
        return Scope(fold(self._host_name), tuple(fold(segment) for segment in segments))

    def _verify(self, token: SharedAccessSignature) -> VerifiedToken[SharedAccessSignature]:
        find = self._rule_at if self._is_ours(token) else _no_rule
        return verify(token, find, self._machine_ms() // 1000, hosts=self.hosts)

    def _verify_again(self, token: Token) -> VerifiedToken[Token]:
        if isinstance(token, SharedAccessSignature):
            return self._verify(token)
        if self._issuer is None:  # no issuer, no such token; if one came all the same, nobody signed it
            raise invalid_signature()
        return self._issuer.verify(token, self._machine_ms() // 1000, hosts=self.hosts)

    def _check_entity(self, scope: Scope) -> None:
        """NOT_FOUND when the scope names an entity that is not there, UNAUTHORIZED when it names a revoked publisher.

        The namespace and its nodes are always there.
        """
        segments = scope.segments
        if not segments or segments[0].startswith("$"):
            return
        address = address_at(segments, self._namespace.find_any)
        entity = None if address is None else of_kind(address.entity, MessagingDescription)
        has_part = address is not None and (
            entity is None or parse_queue_part(entity.description, address.part) is not None
        )
        if address is None or not has_part:
            raise not_found("/".join(segments), host=self._host_name)
        hub = of_kind(address.entity, EventHubDescription)
        match address.part:
            case ("publishers", publisher, *_) if hub is not None:
                check_publisher(hub.description, publisher)

    def _namespace_rule(self, name: str) -> AuthorizationRule | None:
        return find_rule(name, self._namespace.description.rules)

    def has_rule(self, name: str, scope: Scope) -> bool:
        """Whether there is a rule of that name where the scope lies: of its hub, else of the namespace."""
        return find_rule(name, *self._namespace.rules_at(scope.segments)) is not None

    def has_key(self, name: str, key: Secret) -> bool:
        """Whether this is a key of the namespace's rule of that name."""
        return key_matches(self._namespace_rule(name), key)

    def has_signed(self, token: SharedAccessSignature) -> bool:
        """Whether a rule of this namespace signed a token, whosever it is."""
        return is_signed_by(token, self._rule_at)

    def _rule_at(self, name: str, scope: Scope) -> AuthorizationRule | None:
        """The rule of that name where the scope lies."""
        return find_rule(name, *self._namespace.rules_at(scope.segments))


def _no_rule(name: str, scope: Scope) -> None:
    """Of a token that belongs to another namespace, no rule is here."""
