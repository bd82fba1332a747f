"""Named keys with rights: the rules of a namespace and of its hubs.

A rule is kept as a description in the catalog; what a key may do stands in namespace/rights.py and how a key is held
in namespace/secret.py. Here: making keys, finding the rule that a name means at a resource, and the one comparison of
keys and signatures, which takes as long for a wrong one as for a right one (rule R22).
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from hashlib import sha256

from hubweir.auth.resource_scope import Scope
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription as AuthorizationRule
from hubweir.namespace.secret import Secret

__all__ = [
    "AuthorizationRule",
    "Rights",
    "RuleFinder",
    "Secret",
    "find_rule",
    "key_matches",
    "new_key",
    "sign",
    "signature_matches",
]

KEY_BYTES = 32

# The rule of that name which holds at a resource: of the hub that the scope names, else of the namespace; None: none.
RuleFinder = Callable[[str, Scope], AuthorizationRule | None]

# Stands in where there is no rule or no key, so that the work done is the same. It never verifies anything.
_NO_KEY = Secret("0" * 44)
_NO_RULE = AuthorizationRule("", Rights(0), _NO_KEY, _NO_KEY)


def new_key(random: bytes) -> Secret:
    """A key as the service makes them: the base64 text of 32 random bytes (from Env.random_bytes)."""
    if len(random) != KEY_BYTES:
        raise ValueError(f"a key is made of {KEY_BYTES} random bytes, not of {len(random)}")
    return Secret(base64.b64encode(random).decode("ascii"))


def find_rule(name: str, *levels: tuple[AuthorizationRule, ...]) -> AuthorizationRule | None:
    """The rule with this name (any case) on the first level that has one: the hub's rules, then the namespace's.

    A hub's rule hides a rule of the same name above it: a key of one never works in the other's place. Every rule is
    looked at in any case, so that the time does not tell whether there is one, or where.
    """
    folded = fold(name)
    found: AuthorizationRule | None = None
    for rules in levels:
        for rule in rules:
            matches = fold(rule.name) == folded
            found = rule if matches and found is None else found
    return found


def sign(key: Secret, text: bytes) -> bytes:
    """HMAC-SHA256 of text. The key is the UTF-8 of the key's text, which looks like base64 and is not decoded."""
    return hmac.new(key.reveal().encode(), text, sha256).digest()


def signature_matches(rule: AuthorizationRule | None, text: bytes, signature: bytes) -> bool:
    """True when the primary or the secondary key of the rule signed text. Both are always tried; no rule: False."""
    return _any_key(rule, lambda key: hmac.compare_digest(sign(key, text), signature))


def key_matches(rule: AuthorizationRule | None, key: Secret) -> bool:
    """True when key is the primary or the secondary key of the rule itself (SASL PLAIN). No rule: False."""
    # Hashes, because compare_digest tells by its time whether the lengths are the same.
    shown = sign(key, b"plain") if key else b""
    return _any_key(rule, lambda known: hmac.compare_digest(sign(known, b"plain"), shown))


def _any_key(rule: AuthorizationRule | None, matches: Callable[[Secret], bool]) -> bool:
    found = False
    tried = rule or _NO_RULE
    for key in (tried.primary or _NO_KEY, tried.secondary or _NO_KEY):
        matched = matches(key)
        found |= matched and key is not _NO_KEY
    return found
