"""Legal and illegal names."""

from collections.abc import Callable
from functools import partial

import pytest

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.names import (
    check_entity_name,
    check_group_name,
    check_hub_name,
    check_namespace_name,
    check_rule_name,
    check_subscription_name,
    check_subscription_rule_name,
)


@pytest.mark.parametrize("name", ["h", "eh1", "My.Hub-1_x~y", "team/metrics", "0", "h" * 256, "a/-b"])
def test_a_legal_hub_name_is_taken_as_it_is(name: str) -> None:
    assert check_hub_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", "h" * 257, "-h", "h-", ".h", "h.", "_h", "/h", "h/", "a//b", "a/./b", "a/../b", "..", "$cbs", "$management",
        "a b", "a%b", "a\\b", "a\0b", "a\nb", "hüb", "\u212a", "a\u2044b", "hub/Partitions/0", "partitions",
        "x/ConsumerGroups", "publishers/a", "a?b", "a#b", "a:b", "a@b", "a;b",
    ],
)  # fmt: skip
def test_a_hub_name_that_could_be_taken_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(ServiceError) as refused:
        check_hub_name(name)
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
    assert "event hub" in refused.value.text


@pytest.mark.parametrize("name", ["$default", "$Default", "$DEFAULT"])
def test_the_default_group_is_legal_in_any_case_and_has_one_spelling(name: str) -> None:
    assert check_group_name(name) == "$Default"


@pytest.mark.parametrize(
    ("check", "name", "legal"),
    [
        (check_group_name, "g" * 50, True),
        (check_group_name, "g" * 51, False),
        (check_group_name, "a/b", False),
        (check_group_name, "$other", False),
        (check_group_name, "", False),
        (check_namespace_name, "hubweir", True),
        (check_namespace_name, "a_b", False),
        (check_namespace_name, "n" * 51, False),
        (partial(check_entity_name, "queue"), "txt/.-_123", True),
        (partial(check_entity_name, "queue"), "q" * 260, True),
        (partial(check_entity_name, "queue"), "q" * 261, False),
        (partial(check_entity_name, "queue"), "q/../r", False),
        (partial(check_entity_name, "topic"), "t/Subscriptions/s", False),
        (check_subscription_name, "s" * 50, True),
        (check_subscription_name, "s" * 51, False),
        (check_subscription_name, "a/b", False),
        (check_subscription_name, "$Default", False),
        (check_subscription_rule_name, "$Default", True),
        (check_subscription_rule_name, "by.carrier-1", True),
        (check_subscription_rule_name, "r" * 51, False),
        (check_subscription_rule_name, "a/b", False),
        (check_rule_name, "RootManageSharedAccessKey", True),
        (check_rule_name, "send policy", True),
        (check_rule_name, "r" * 257, False),
        (check_rule_name, " rule", False),
        (check_rule_name, "a\0b", False),
        (check_rule_name, "r\u00e9gle", False),
    ],
)
def test_other_names_keep_to_their_alphabets(check: Callable[[str], str], name: str, legal: bool) -> None:
    if legal:
        assert check(name) == name
    else:
        with pytest.raises(ServiceError) as refused:
            check(name)
        assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
        assert refused.value.text.isprintable()


def test_the_text_says_what_is_wrong_in_whole_words() -> None:
    with pytest.raises(ServiceError) as dots:
        check_hub_name("a/../b")
    assert dots.value.text == (
        "'a/../b' is not a legal event hub name: a segment between slashes is empty, one dot or two dots."
    )
