"""Refusals have the condition that stops a client's retries, and the words that it matches."""

import pytest

from hubweir.auth.refusal import AuthRefused, RefusalKind, expired, invalid_audience, invalid_signature, malformed
from hubweir.auth.resource_scope import Scope
from hubweir.errors import AUTH_FAILED


@pytest.mark.parametrize(
    ("refused", "kind", "text"),
    [
        (malformed("it is empty"), RefusalKind.MALFORMED, "MalformedToken: The token cannot be read: it is empty."),
        (invalid_signature(), RefusalKind.INVALID_SIGNATURE, "InvalidSignature: The token has an invalid signature."),
        (
            expired(1_700_000_000_000),
            RefusalKind.EXPIRED,
            "ExpiredToken: The token is expired. Expiration time: 2023-11-14T22:13:20Z. Put a new one.",
        ),
        (
            invalid_audience(Scope("h", ("hub", "partitions", "0"))),
            RefusalKind.INVALID_AUDIENCE,
            "InvalidAudience: The token does not cover the audience 'sb://h/hub/partitions/0'.",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, RefusalKind) else "",
)
def test_a_refusal_says_its_kind_first(refused: AuthRefused, kind: RefusalKind, text: str) -> None:
    assert (refused.condition, refused.kind, refused.text) == (AUTH_FAILED, kind, text)
