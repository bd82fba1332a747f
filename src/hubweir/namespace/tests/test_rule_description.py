"""Authorization rules at their limits."""

import pytest

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription, check_rule
from hubweir.namespace.secret import KEY_LIMIT, Secret


@pytest.mark.parametrize(
    "rule",
    [
        AuthorizationRuleDescription("r", Rights.SEND, Secret(""), Secret("")),
        AuthorizationRuleDescription("r", Rights.SEND, Secret("k" * (KEY_LIMIT + 1)), Secret("")),
        AuthorizationRuleDescription("r", Rights.SEND, Secret("k"), Secret("k" * (KEY_LIMIT + 1))),
        AuthorizationRuleDescription("r", Rights.MANAGE, Secret("k"), Secret("")),
        AuthorizationRuleDescription("", Rights.SEND, Secret("k"), Secret("")),
    ],
)
def test_a_rule_without_key_rights_or_name_is_refused(rule: AuthorizationRuleDescription) -> None:
    with pytest.raises(ServiceError) as refused:
        check_rule(rule)
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
    assert "kkk" not in refused.value.text


def test_a_rule_at_the_limits_is_legal() -> None:
    rule = AuthorizationRuleDescription("r", Rights.ALL, Secret("k" * KEY_LIMIT), Secret(""))
    assert check_rule(rule) is rule
