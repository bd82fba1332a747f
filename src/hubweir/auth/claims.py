"""The claims of one connection: rights that its tokens have proved, and until when.

Every put-token that is taken adds a claim: rights on an audience until a time; a later one for the same audience
replaces it. A link, and every request on a management link, needs a claim whose audience covers its resource and that
has the right; there is no other way in (rule R23). Claims are never shared between connections.

| operation                                      | right |
|------------------------------------------------|-------|
| attach a sender to a hub, partition, publisher | SEND |
| attach a receiver to a group's partition       | LISTEN |
| read runtime information                       | any of the three |
| create, change, delete                         | MANAGE |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hubweir.auth.authorization_rule import AuthorizationRule, Rights
from hubweir.auth.connection_grant import ConnectionGrant
from hubweir.auth.json_web_token import JsonWebToken
from hubweir.auth.refusal import AuthRefused, RefusalKind, invalid_audience
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import SharedAccessSignature
from hubweir.auth.verified_token import VerifiedToken
from hubweir.errors import RESOURCE_LIMIT, UNAUTHORIZED, ServiceError
from hubweir.namespace.error_text import timestamp, unauthorized
from hubweir.namespace.rights import right_name

# A client with one link a partition and group puts one token each; nobody has thousands.
CLAIMS_LIMIT = 4_096
# Links outlive their claim by this much, so that a renewal in flight is not too late; new attaches do not.
GRACE_MS = 5_000
FOR_EVER = 2**63 - 1  # the end of what has none
# The two kinds of token that a claim may rest on.
Token = SharedAccessSignature | JsonWebToken
ISSUED = "JSON Web Token"  # in the place of a rule's name
# The scope of what SASL proved: the whole namespace.
EVERYTHING = Scope("", ())


@dataclass(frozen=True, slots=True)
class Claim:
    """Rights on all that audience covers, until a time, by a token."""

    audience: Scope
    rights: Rights
    expires_at_ms: int
    token: Token


class Claims:
    """The claims of one connection. Time is passed in: wall time that never runs back (high_water_time.py)."""

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, ...], Claim] = {}
        self._grant: ConnectionGrant | None = None

    def __len__(self) -> int:
        return len(self._by_path)

    @property
    def is_empty(self) -> bool:
        """True while this connection has proved nothing."""
        return not self._by_path and self._grant is None

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that they rest on, each once; what an issuer signed has none, and counts as one more."""
        tokens = (claim.token for claim in self._by_path.values())
        named = [each.rule_name if isinstance(each, SharedAccessSignature) else ISSUED for each in tokens]
        granted = [] if self._grant is None else [self._grant.rule.name]
        return tuple(dict.fromkeys([*granted, *named]))

    def put(self, audience: Scope, verified: VerifiedToken[Token]) -> bool:
        """Take a verified token for an audience; return whether it replaces another one.

        Raises AuthRefused INVALID_AUDIENCE when the token does not cover it, ServiceError RESOURCE_LIMIT when this
        connection holds too many audiences. What was there before stays then.
        """
        if not verified.covers(audience):
            raise invalid_audience(audience)
        replaces = audience.segments in self._by_path
        if len(self._by_path) >= CLAIMS_LIMIT and not replaces:
            raise ServiceError(
                RESOURCE_LIMIT,
                f"This connection holds tokens for {CLAIMS_LIMIT} audiences, which is the limit. Put one token for "
                "the whole event hub, or use another connection.",
            )
        self._by_path[audience.segments] = Claim(audience, verified.rights, verified.expires_at_ms, verified.token)
        return replaces

    def delete(self, audience: Scope) -> None:
        """Forget the claim for exactly this audience; does nothing when there is none. The caller checks its links."""
        self._by_path.pop(audience.segments, None)

    def grant(self, grant: ConnectionGrant) -> None:
        """Take what SASL proved: the rights of that rule on the whole namespace."""
        self._grant = grant

    def check(self, right: Rights, resource: Scope, now_ms: int) -> int:
        """Until when a claim gives the right on the resource, ms since 1970; of several rights, any one is enough.

        A change of the claims may end it sooner. Raises ServiceError UNAUTHORIZED with the text that clients match.
        """
        if self._grant is not None and self._grant.holds(right, now_ms):
            return FOR_EVER if self._grant.ends_at_ms is None else self._grant.ends_at_ms
        lapsed: Claim | None = None
        for depth in reversed(range(len(resource.segments) + 1)):
            claim = self._by_path.get(resource.segments[:depth])
            if claim is not None and claim.rights & right:
                if now_ms < claim.expires_at_ms:
                    return claim.expires_at_ms
                lapsed = claim
        name = right_name(right if right in (Rights.SEND, Rights.LISTEN, Rights.MANAGE) else Rights.LISTEN)
        text = unauthorized(name, resource.uri)
        if lapsed is not None:
            text += f" The token for '{lapsed.audience.uri}' expired at {timestamp(lapsed.expires_at_ms)}Z."
        raise ServiceError(UNAUTHORIZED, text)

    def next_deadline_ms(self) -> int | None:
        """When `expired` will next have something to say; None: never."""
        ends = [claim.expires_at_ms for claim in self._by_path.values()]
        if self._grant is not None and self._grant.ends_at_ms is not None:
            ends.append(self._grant.ends_at_ms)
        return min(ends) + GRACE_MS if ends else None

    def expired(self, now_ms: int) -> list[Scope]:
        """Forget the claims that ended GRACE_MS ago, and return their audiences: the caller checks its links again."""
        ended = self._drop([claim for claim in self._by_path.values() if claim.expires_at_ms + GRACE_MS <= now_ms])
        if self._grant is not None and self._grant.has_ended(now_ms - GRACE_MS):
            self._grant = None
            ended.append(EVERYTHING)
        return ended

    def recheck(
        self,
        verify_again: Callable[[Token], VerifiedToken[Token]],
        find_rule: Callable[[str], AuthorizationRule | None],
    ) -> list[Scope]:
        """After rules or keys changed: take every claim anew, and return the audiences that lost or changed rights.

        verify_again: a token by today's rules, or by the keys that its issuer has today. find_rule: a rule of the
        namespace, for what SASL proved.
        A key that was replaced, a rule that was deleted or made again under its name, ends its claims. The scope
        without segments stands for the whole namespace. The caller checks its links again.
        """
        changed: list[Scope] = []
        for claim in tuple(self._by_path.values()):
            try:
                verified = verify_again(claim.token)
            except AuthRefused as refused:
                if refused.kind is not RefusalKind.EXPIRED:  # expired() does those, after their grace
                    changed += self._drop([claim])
                continue
            if verified.rights != claim.rights:
                self._by_path[claim.audience.segments] = replace(claim, rights=verified.rights)
                changed.append(claim.audience)
        if self._grant is not None:
            before, self._grant = self._grant, self._grant.under(find_rule(self._grant.rule.name))
            if self._grant is None or self._grant.rule.rights != before.rule.rights:
                changed.append(EVERYTHING)
        return changed

    def _drop(self, claims: list[Claim]) -> list[Scope]:
        for claim in claims:
            del self._by_path[claim.audience.segments]
        return [claim.audience for claim in claims]
