"""Expressions of templates: how they are read, what they see, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.config.arm_expressions import TemplateScope
from hubweir.config.arm_functions import BadExpression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"), ("[[literal]", "[literal]"), ("['it''s']", "it's"), ("[add(2, -3)]", -1),
        ("[if(equals(parameters('n'), 2), 'two', reference('never'))]", "two"),
        ("[toLower(concat('A', string(true())))]", "atrue"), ("[parameters('o').Inner[1]]", "b"),
        ("[join(createArray('a', 'b'), '-')]", "a-b"), ("[length(split('a,b,c', ','))]", 3),
        ("[coalesce(null(), 'x')]", "x"), ("[substring('hubweir', 3)]", "weir"), ("[int('7')]", 7),
    ],
)  # fmt: skip
def test_expressions_have_the_values_that_azure_gives_them(text: str, value: Any) -> None:
    assert TemplateScope({"n": 2, "o": {"inner": ["a", "b"]}}, {}, group="g").value(text) == value


@pytest.mark.parametrize(
    "text", ["[concat('a']", "[concat('a') 'b']", "[ ]", "[?]", "[nothing()]", "[parameters('o').missing]",
             "[div(1, 0)]", "[copyIndex()]", "[" + "not(" * 200 + "true()" + ")" * 200 + "]"]
)  # fmt: skip
def test_what_is_no_expression_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(BadExpression):
        TemplateScope({"o": {}}, {}, group="g").value(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[int(parameters('key'))]", "int cannot be done with a text of 6 characters"),
        ("[add(parameters('key'), 1)]", "add cannot be done with a text of 6 characters, 1: a whole number is needed"),
        ("[createObject(parameters('key'))]", "createobject cannot be done with a text of 6 characters"),
        ("[parameters('key').name]", "the step .name cannot be done with a text of 6 characters, a text of 4 char"),
        ("[not(concat(parameters('key'), '='))]", "a text of 7 characters is neither true nor false"),
        ("[length(createArray(parameters('key')), 2)]", "length cannot be done with a list of 1, 2"),
        ("[if(parameters('key'), 1, 2)]", "a text of 6 characters is neither true nor false"),
        ("[parameters('key', 1)]", "a parameter is asked for by one name, in quotes"),
        ("[copyIndex(true())[0]]", "copyIndex stands outside of a loop"),
        ("[copyIndex(null())]", "copyIndex takes the name of a loop and an offset"),
    ],
)
def test_a_refusal_says_what_the_values_are_and_quotes_none(text: str, told: str) -> None:
    with pytest.raises(BadExpression) as refused:
        TemplateScope({"key": "s3cret"}, {}, group="g").value(text)
    assert told in str(refused.value) and "s3cret" not in str(refused.value)


def test_a_loop_without_a_good_count_does_not_quote_it() -> None:
    with pytest.raises(BadExpression, match="has the count a text of 6 characters; 0 to 1000 are allowed"):
        TemplateScope({"key": "s3cret"}, {}, group="g").value(
            {"copy": [{"name": "a", "count": "[parameters('key')]", "input": 1}]}
        )


@pytest.mark.parametrize("text", ["[parameters('o')" + ".a" * 5_000 + "]", "[parameters('o')" + "[0]" * 5_000 + "]"])
def test_steps_into_a_value_are_bounded(text: str) -> None:
    with pytest.raises(BadExpression, match="cannot be read at"):
        TemplateScope({"o": {}}, {}, group="g").value(text)


def test_the_innermost_loop_is_meant_where_none_is_named() -> None:
    inside = TemplateScope({}, {}, group="g").in_copy("Outer", 4).in_copy("inner", 2)
    assert inside.value("[copyIndex()]") == 2 and inside.value("[copyIndex('outer', 10)]") == 14
    assert inside.value("[copyIndex(1)]") == 3


def test_names_of_objects_are_evaluated_and_other_values_stay() -> None:
    written = {"[concat('a', 'b')]": [1, True, None, "[add(1, 1)]"], "copy": "text"}
    assert TemplateScope({}, {}, group="g").value(written) == {"ab": [1, True, None, 2], "copy": "text"}


@pytest.mark.parametrize("count", [-1, 1_001, "2", True, None])
def test_a_loop_has_a_bounded_count(count: Any) -> None:
    with pytest.raises(BadExpression, match="0 to 1000 are allowed"):
        TemplateScope({}, {}, group="g").value({"copy": [{"name": "a", "count": count, "input": 1}]})


def test_the_resource_group_has_the_name_that_was_given() -> None:
    scope = TemplateScope({}, {}, group="shops")
    assert scope.value("[resourceGroup().name]") == "shops" and scope.value("[resourceGroup().location]") == "local"
