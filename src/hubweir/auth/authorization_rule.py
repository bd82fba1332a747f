"""Named keys with rights: the rules of a namespace and of its hubs.

A rule is kept as a description in the catalog; what a key may do stands in namespace/rights.py and how a key is held
in namespace/secret.py. Here: making keys, and finding the rule that a name means at a resource.
"""

from __future__ import annotations

import base64

from hubweir.namespace.descriptions import AuthorizationRuleDescription as AuthorizationRule
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret

__all__ = ["AuthorizationRule", "Rights", "Secret", "new_key"]

KEY_BYTES = 32


def new_key(random: bytes) -> Secret:
    """A key as the service makes them: the base64 text of 32 random bytes (from Env.random_bytes)."""
    if len(random) != KEY_BYTES:
        raise ValueError(f"a key is made of {KEY_BYTES} random bytes, not of {len(random)}")
    return Secret(base64.b64encode(random).decode("ascii"))
