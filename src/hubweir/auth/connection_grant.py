"""A grant of SASL: a rule of the namespace, whose rights hold for the whole connection without any token.

PLAIN (plain.py) shows a key of the rule, EXTERNAL (external.py) a client's certificate with the rule's name. A grant
lives in the memory of its connection only and is gone with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubweir.auth.authorization_rule import AuthorizationRule, Rights, Secret, key_matches


@dataclass(frozen=True, slots=True)
class ConnectionGrant:
    """key: the one that was shown; None: none was needed. ends_at_ms: when the proof ends; None: never."""

    rule: AuthorizationRule
    key: Secret | None = None
    ends_at_ms: int | None = None

    def holds(self, right: Rights, now_ms: int) -> bool:
        """True while the grant gives the right; of several rights, any one is enough."""
        return bool(self.rule.rights & right) and not self.has_ended(now_ms)

    def has_ended(self, now_ms: int) -> bool:
        """True from the end of the proof on."""
        return self.ends_at_ms is not None and self.ends_at_ms <= now_ms

    def under(self, rule: AuthorizationRule | None) -> ConnectionGrant | None:
        """The grant under today's rule of that name; None when there is none, or it has another key by now."""
        if rule is None or (self.key is not None and not key_matches(rule, self.key)):
            return None
        return replace(self, rule=rule)
