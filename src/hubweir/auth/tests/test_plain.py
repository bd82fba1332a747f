"""SASL PLAIN: name and key of a rule, exactly."""

import pytest

from hubweir.auth.authorization_rule import AuthorizationRule, Rights, Secret, find_rule
from hubweir.auth.plain import RESPONSE_LIMIT, check_plain
from hubweir.errors import UNAUTHORIZED, ServiceError

RULES = (
    AuthorizationRule("send policy", Rights.SEND, Secret("pr\u00efmary"), Secret("second")),
    AuthorizationRule("one key", Rights.LISTEN, Secret("only"), Secret("")),
)


def find(name: str) -> AuthorizationRule | None:
    return find_rule(name, RULES)


@pytest.mark.parametrize(
    "response",
    [
        "\0send policy\0pr\u00efmary".encode(),
        b"\0send policy\0second",
        b"send policy\0send policy\0second",
        b"\0SEND POLICY\0second",
    ],
)
def test_a_rule_s_name_and_either_key_are_taken(response: bytes) -> None:
    assert check_plain(response, find).rule.rights == Rights.SEND


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\0",
        b"\0\0",
        b"\0send policy",
        b"\0send policy\0",
        b"\0send policy\0wrong",
        b"\0send policy\0secon",
        b"\0send policy\0second\0",
        b"\0send policy\0second\0x",
        b"\0send policy\0only",
        b"\0nobody\0second",
        b"\0nobody\0",
        b"\0one key\0",
        b"\0one key\0" + b"0" * 44,
        b"other\0send policy\0second",
        b"\0\0second",
        b"\0\xff\xfe\0second",
        b"\0send policy\0\xff",
        b"\0send policy\0" + b"x" * RESPONSE_LIMIT,
    ],
)
def test_everything_else_is_refused_in_one_and_the_same_text(response: bytes) -> None:
    with pytest.raises(ServiceError) as refused:
        check_plain(response, find)
    assert refused.value.condition is UNAUTHORIZED
    assert refused.value.text == "The rule name or key given to SASL PLAIN is not right."


def test_a_response_of_the_largest_size_is_taken_and_one_byte_more_is_not() -> None:
    key = "k" * (RESPONSE_LIMIT - len("\0long\0"))
    rules = [AuthorizationRule("long", Rights.SEND, Secret(key), Secret(""))]
    longer = [AuthorizationRule("long", Rights.SEND, Secret(key + "k"), Secret(""))]
    assert check_plain(f"\0long\0{key}".encode(), lambda name: find_rule(name, rules)).rule.name == "long"
    with pytest.raises(ServiceError):
        check_plain(f"\0long\0{key}k".encode(), lambda name: find_rule(name, longer))
