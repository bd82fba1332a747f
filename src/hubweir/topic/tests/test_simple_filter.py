"""Which filters become tables, and what stands in them. That tables and trees agree shows test_topic_rules.py."""

import math

import pytest

from hubweir.topic.correlation_filter import CorrelationFilter
from hubweir.topic.rule import FalseFilter, Filter, TrueFilter
from hubweir.topic.simple_filter import ALWAYS, NEVER, Conjunction, conjunctions_of, key_of
from hubweir.topic.sql_values import OPAQUE, Value
from hubweir.topic.tests.given_messages import sql_filter


def planned(text: str, **parameters: object) -> tuple[Conjunction, ...] | None:
    return conjunctions_of(sql_filter(text, **parameters))


def one(text: str, **parameters: object) -> Conjunction:
    found = planned(text, **parameters)
    assert found is not None and len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("color = 'blue'", [("user.color", ("blue",))]),
        ("'blue' = Color", [("user.color", ("blue",))]),
        ("sys.Label = 'x' AND a = 5", [("sys.label", ("x",)), ("user.a", (5,))]),
        ("b = TRUE AND a = 1.5", [("user.a", (1.5,)), ("user.b", ((bool, True),))]),
        ("a IN (1, 2, 1)", [("user.a", (1, 2))]),
        ("a LIKE 'x'", [("user.a", ("x",))]),
        ("NOT (a <> 1)", [("user.a", (1,))]),
        ("(a = 1 AND (b = 2 AND c = 3)) AND 1 = 1", [("user.a", (1,)), ("user.b", (2,)), ("user.c", (3,))]),
        ("a = 9007199254740991", [("user.a", (2**53 - 1,))]),
        ("a = @p", [("user.a", ("given",))]),
    ],
)
def test_equalities_become_keys_by_column(text: str, keys: list[object]) -> None:
    assert one(text, p="given") == Conjunction(tuple(keys), (), ())


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("a <> 1", [0, 1.5, 2**60], [1, 1.0, "1", True]),
        ("a > 1", [2, 1.5, math.inf], [1, 0, math.nan, "2", True]),
        ("a >= 1", [1, 2], [0.5]),
        ("a < 1", [0, -math.inf], [1, 2, math.nan]),
        ("a <= 1", [1, 0], [1.5]),
        ("1 < a", [2], [1, 0]),
        ("1 >= a", [1, 0], [2]),
        ("a > 'b'", ["c", "bb"], ["b", "a", 5]),
        ("a <> TRUE", [False], [True, 0]),
        ("a LIKE 'x%'", ["x", "xy"], ["", "yx", 5]),
        ("a LIKE '%x'", ["x", "yx"], ["xy"]),
        ("a LIKE '%x%'", ["x", "axb"], ["X", ""]),
        ("a LIKE '%'", ["", "x"], [5, True]),
        ("a IS NOT NULL", [0, "", False, b""], []),
        ("NOT (a = 1)", [2], [1, "x"]),
    ],
)
def test_other_comparisons_become_checks(text: str, true: list[object], false: list[object]) -> None:
    found = one(text)
    assert found.keys == () and found.rest == ()
    (check,) = found.checks
    assert check.column == "user.a"

    def holds(value: object) -> bool:
        return type(value) in check.types and bool(check.holds(value))

    assert [holds(value) for value in true] == [True] * len(true)
    assert [holds(value) for value in false] == [False] * len(false)


def test_checks_cost_no_python_call() -> None:
    texts = ["a <> 1", "a > 1", "a LIKE 'x%'", "a LIKE '%x'", "a LIKE '%x%'", "a IS NOT NULL", "a NOT IN (1, 2)"]
    for text in texts:
        for check in one(text).checks:
            assert type(check.holds).__module__ in ("functools", "operator")
            assert not hasattr(getattr(check.holds, "func", check.holds), "__code__")


def test_a_second_equality_of_a_column_and_not_in_become_checks() -> None:
    assert len(one("a = 1 AND a = 2").checks) == 1
    assert len(one("a IN (1, 2) AND a = 2").checks) == 1
    found = one("a = 1 AND a IN (1, 2)")
    assert found.keys == (("user.a", (1,)),) and len(found.rest) == 1
    assert len(one("a NOT IN (1, 'x', TRUE)").checks) == 3
    assert one("EXISTS(sys.To)").checks[0].column == "sys.to"


@pytest.mark.parametrize(
    "text",
    [
        "b IS NULL", "EXISTS(b)", "NOT EXISTS(sys.To)", "b = c", "b IN (1, c)", "b IN (1, NULL)", "b = NULL",
        "NOT (b < 1)", "b NOT LIKE 'x%'", "b LIKE '_x'", "b LIKE 'x%y'", "NOT (b = 1 AND c = 2)", "b = 1 OR c = 2",
        "b = 9007199254740992", "b > -9007199254740992", "b <> 1E16", "NOT (b IS NOT NULL)", "'x' LIKE 'x%'",
    ],
)  # fmt: skip
def test_other_conditions_are_left_to_the_tree_on_messages_that_have_the_keys(text: str) -> None:
    found = one(f"a = 1 AND ({text})")
    assert found.keys == (("user.a", (1,)),) and found.checks == () and len(found.rest) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 AND b + 1 = 2", "-a = 1", "a = 1 OR p('b') = 2", "newid() = a", "sys.Nothing = 1", "a LIKE '%x_y%'",
        "EXISTS(sys.Nothing)", "a = 1 AND b IN (c + 1)", "EXISTS(p('a'))", "NOT (a + 1 IS NULL)", "a IN (sys.Nothing)",
        "sys.Nothing IN (1)", "a + 1 IN (1)",
    ],
)  # fmt: skip
def test_a_filter_that_may_fail_is_left_to_the_tree(text: str) -> None:
    assert planned(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 = 1", ALWAYS),
        ("1 = 1 OR a = 1", ALWAYS),
        ("a = 1 OR NOT (1 = 2)", ALWAYS),
        ("1 = 1 AND 'a' < 'b'", ALWAYS),
        ("1 = 2", NEVER),
        ("a = 1 AND 1 = 2", NEVER),
        ("NULL = NULL", NEVER),
        ("1 = 'a'", NEVER),
        ("a > TRUE", NEVER),
        ("a LIKE @missing", NEVER),
    ],
)
def test_constants_decide_before_any_message(text: str, expected: tuple[Conjunction, ...]) -> None:
    assert planned(text) == expected


def test_alternatives_are_found_each_by_its_own_keys() -> None:
    found = planned("sys.To IN ('a', 'b') OR (store = 'c' OR 1 = 2)")
    assert found == (Conjunction((("sys.to", ("a", "b")),), (), ()), Conjunction((("user.store", ("c",)),), (), ()))


def test_more_keys_than_the_limit_are_left_to_the_tree() -> None:
    sixteen = ",".join(map(str, range(16)))
    found = one(f"a IN ({sixteen}) AND b IN ({sixteen})")
    assert len(found.keys) == 2 and not found.rest
    found = one(f"a IN ({sixteen}) AND b IN ({sixteen}, 16)")
    assert len(found.keys) == 1 and len(found.rest) == 1


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (TrueFilter(), ALWAYS),
        (FalseFilter(), NEVER),
        (CorrelationFilter(), ALWAYS),
        (
            CorrelationFilter(label="l", reply_to_session_id="r", properties={"A": 5}),
            (Conjunction((("sys.label", ("l",)), ("sys.replytosessionid", ("r",)), ("user.a", (5,))), (), ()),),
        ),
    ],
)
def test_the_other_filters(chosen: Filter, expected: tuple[Conjunction, ...]) -> None:
    assert conjunctions_of(chosen) == expected


def test_values_that_equal_nothing_or_more_than_themselves_are_no_keys() -> None:
    value: Value
    for value in (math.nan, 2**60, 1e300, OPAQUE, None):
        (found,) = conjunctions_of(CorrelationFilter(label="l", properties={"a": value})) or ()
        assert found.keys == (("sys.label", ("l",)),) and len(found.rest) == 1


def test_keys_tell_true_from_one() -> None:
    assert key_of(True) != key_of(1) != key_of(False) != key_of(0)
    assert key_of(1) == key_of(1.0) and hash(key_of(1)) == hash(key_of(1.0))
