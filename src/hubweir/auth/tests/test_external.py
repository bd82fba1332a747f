"""SASL EXTERNAL: a certificate's name is a rule's name, or nothing."""

import pytest

from hubweir.auth.authorization_rule import AuthorizationRule, Rights, Secret, find_rule
from hubweir.auth.external import check_external
from hubweir.errors import UNAUTHORIZED, ServiceError

RULES = (AuthorizationRule("Line 4 Sender", Rights.SEND, Secret("one"), Secret("")),)
NOW_MS = 1_000


def find(name: str) -> AuthorizationRule | None:
    return find_rule(name, RULES)


@pytest.mark.parametrize("name", ["Line 4 Sender", "LINE 4 sender"])
@pytest.mark.parametrize("response", [b"", b"Line 4 Sender", b"line 4 sender"])
def test_a_certificate_gives_the_rights_of_the_rule_that_it_names_until_it_ends(name: str, response: bytes) -> None:
    grant = check_external(name, 5_000, response, find, NOW_MS)
    assert grant.holds(Rights.SEND, 4_999)
    assert not grant.holds(Rights.SEND, 5_000)
    assert not grant.holds(Rights.LISTEN, NOW_MS)


@pytest.mark.parametrize(
    ("name", "ends_at_ms", "response"),
    [
        (None, 5_000, b""),
        (None, 5_000, b"Line 4 Sender"),
        ("", 5_000, b""),
        ("nobody", 5_000, b""),
        ("Line 4 Sender\0", 5_000, b""),
        ("nobody", 5_000, b"Line 4 Sender"),
        ("Line 4 Sender", 5_000, b"nobody"),
        ("Line 4 Sender", 5_000, b"\xff"),
        ("Line 4 Sender", NOW_MS, b""),
        ("Line 4 Sender", 0, b""),
    ],
)
def test_everything_else_proves_nothing(name: str | None, ends_at_ms: int, response: bytes) -> None:
    with pytest.raises(ServiceError) as refused:
        check_external(name, ends_at_ms, response, find, NOW_MS)
    assert refused.value.condition is UNAUTHORIZED
