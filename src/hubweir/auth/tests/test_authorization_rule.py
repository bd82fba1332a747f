"""Rules by name, and the keys they hold."""

import pytest

from hubweir.auth.authorization_rule import (
    AuthorizationRule,
    Rights,
    Secret,
    find_rule,
    key_matches,
    new_key,
    sign,
    signature_matches,
)

HUB = AuthorizationRule("Both", Rights.SEND, Secret("hub"), Secret(""))
NAMESPACE = AuthorizationRule("both", Rights.ALL, Secret("namespace"), Secret("second"))


def test_the_hub_s_rule_hides_the_namespace_s_rule_of_the_same_name() -> None:
    assert find_rule("BOTH", (HUB,), (NAMESPACE,)) is HUB
    assert find_rule("both", (), (NAMESPACE,)) is NAMESPACE
    assert find_rule("bot", (HUB,), (NAMESPACE,)) is None
    assert find_rule("", (HUB,), (NAMESPACE,)) is None


def test_a_key_that_is_empty_matches_nothing() -> None:
    assert key_matches(NAMESPACE, Secret("namespace"))
    assert key_matches(NAMESPACE, Secret("second"))
    assert not key_matches(HUB, Secret(""))
    assert not key_matches(None, Secret(""))
    assert not key_matches(None, Secret("0" * 44))


@pytest.mark.parametrize("primary, secondary", [("", ""), ("key", ""), ("", "key")])
def test_nothing_that_an_empty_key_signed_is_taken(primary: str, secondary: str) -> None:
    rule = AuthorizationRule("rule", Rights.ALL, Secret(primary), Secret(secondary))
    assert not signature_matches(rule, b"text", sign(Secret(""), b"text"))
    assert not signature_matches(rule, b"text", sign(Secret("0" * 44), b"text"))
    assert signature_matches(rule, b"text", sign(Secret("key"), b"text")) == ("key" in (primary, secondary))


def test_a_new_key_is_the_base64_of_32_random_bytes() -> None:
    assert new_key(bytes(32)).reveal() == "A" * 43 + "="
    with pytest.raises(ValueError, match="32 random bytes"):
        new_key(bytes(31))
