"""SASL EXTERNAL: a client's TLS certificate names a rule, and gives its rights until the certificate ends.

(RFC 4422, appendix A.) That a trusted CA signed the certificate, and that the client holds its key, TLS has shown
before. No key of the rule is shown, so renewing the rule's keys changes nothing here; deleting the rule does.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.auth.authorization_rule import AuthorizationRule
from hubweir.auth.connection_grant import ConnectionGrant
from hubweir.errors import UNAUTHORIZED, ServiceError
from hubweir.namespace.resource_path import fold


def check_external(
    name: str | None,
    ends_at_ms: int,
    response: bytes,
    find_rule: Callable[[str], AuthorizationRule | None],
    now_ms: int,
) -> ConnectionGrant:
    """What a verified certificate proves.

    name: the one name in it (drivers/tls.py says which); None: no certificate was shown, or it has no such name.
    response: on whose behalf, empty or the name again. find_rule: a rule of the namespace by its name. now_ms: time
    that never runs back (high_water_time.py). Raises ServiceError UNAUTHORIZED; its text is for our log, a peer gets
    a code only.
    """
    if name is None:
        raise ServiceError(UNAUTHORIZED, "SASL EXTERNAL came without a client certificate that names one rule.")
    if response and fold(response.decode("utf-8", "replace")) != fold(name):
        raise ServiceError(UNAUTHORIZED, "SASL EXTERNAL asks for another identity than the certificate's.")
    rule = find_rule(name)
    if rule is None:
        raise ServiceError(UNAUTHORIZED, f"The client certificate names {name!r}, which is no rule of the namespace.")
    grant = ConnectionGrant(rule, ends_at_ms=ends_at_ms)
    if grant.has_ended(now_ms):
        raise ServiceError(UNAUTHORIZED, f"The client certificate of {name!r} has ended.")
    return grant
