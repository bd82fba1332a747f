"""Texts to trees: ranks, names, parameters, limits, and the place of each mistake."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hubweir.amqp.types.values import Described, Int, Symbol, Timestamp
from hubweir.errors import ARGUMENT_ERROR
from hubweir.topic.like_pattern import parse_pattern
from hubweir.topic.sql_lexer import SqlError
from hubweir.topic.sql_parser import parse_filter
from hubweir.topic.sql_syntax import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    Exists,
    In,
    IsNull,
    Like,
    NamedProperty,
    NewId,
    Not,
    Or,
    Predicate,
    Sign,
    UserProperty,
)
from hubweir.topic.sql_values import Instant, TimeSpan
from hubweir.topic.tests.given_messages import values
from hubweir.topic.tests.written_filters import predicates, system, text_of_predicate, user

A, B, C, D = user("a"), user("b"), user("c"), user("d")
ONE, TWO = Constant(1), Constant(2)


def parse(text: str, **parameters: object) -> Predicate:
    return parse_filter(text, values(parameters))


def equals(name: UserProperty, value: Constant = ONE) -> Comparison:
    return Comparison("=", name, value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", equals(A)),
        ("a=1", equals(A)),
        ("1 = a", Comparison("=", ONE, A)),
        ("a <> 1", Comparison("<>", A, ONE)),
        ("a != 1", Comparison("<>", A, ONE)),
        ("a <= 1", Comparison("<=", A, ONE)),
        ("1=1", Comparison("=", ONE, ONE)),
        # ranks
        ("a=1 OR b=1 AND c=1", Or((equals(A), And((equals(B), equals(C)))))),
        ("(a=1 OR b=1) AND c=1", And((Or((equals(A), equals(B))), equals(C)))),
        ("a=1 AND b=1 AND c=1", And((equals(A), equals(B), equals(C)))),
        ("a=1 OR b=1 OR c=1", Or((equals(A), equals(B), equals(C)))),
        ("NOT a=1 AND b=1", And((Not(equals(A)), equals(B)))),
        ("NOT NOT a=1", Not(Not(equals(A)))),
        ("not (a=1 and b=1)", Not(And((equals(A), equals(B))))),
        ("a + b * c = d", Comparison("=", Arithmetic(A, (("+", Arithmetic(B, (("*", C),))),)), D)),
        ("(a + b) * c = d", Comparison("=", Arithmetic(Arithmetic(A, (("+", B),)), (("*", C),)), D)),
        ("a - b + c = d", Comparison("=", Arithmetic(A, (("-", B), ("+", C))), D)),
        ("a / b % c = d", Comparison("=", Arithmetic(A, (("/", B), ("%", C))), D)),
        ("-a * b = d", Comparison("=", Arithmetic(Sign("-", A), (("*", B),)), D)),
        ("a-1 = -1", Comparison("=", Arithmetic(A, (("-", ONE),)), Constant(-1))),
        ("a - -1 = +2", Comparison("=", Arithmetic(A, (("-", Constant(-1)),)), TWO)),
        ("- - a = +b", Comparison("=", Sign("-", Sign("-", A)), Sign("+", B))),
        ("((a)) = ((1))", equals(A)),
        ("(((a = 1)))", equals(A)),
        # other conditions
        ("a IS NULL", IsNull(A)),
        ("a is not null", Not(IsNull(A))),
        ("a + b IS NULL", IsNull(Arithmetic(A, (("+", B),)))),
        ("a IN (1)", In(A, (ONE,))),
        ("a NOT IN (1, b, 2)", Not(In(A, (ONE, B, TWO)))),
        ("NOT a IN (1)", Not(In(A, (ONE,)))),
        ("a LIKE 'x%'", Like(A, parse_pattern("x%"))),
        ("a NOT LIKE 'x!%' ESCAPE '!'", Not(Like(A, parse_pattern("x!%", "!")))),
        ("a LIKE 'x' AND b = 1", And((Like(A, parse_pattern("x")), equals(B)))),
        ("EXISTS(a)", Exists(A)),
        ("NOT EXISTS ( sys.Label )", Not(Exists(system("Label")))),
        ("EXISTS(p('a b'))", Exists(NamedProperty(Constant("a b")))),
        # constants
        ("a = 'it''s'", equals(A, Constant("it's"))),
        ("a = TRUE", equals(A, Constant(True))),
        ("a = false", equals(A, Constant(False))),
        ("a = NULL", equals(A, Constant(None))),
        ("a = 2.50", equals(A, Constant(2.5))),
        ("a = 1E2", equals(A, Constant(100.0))),
        ("a = 9223372036854775807", equals(A, Constant(2**63 - 1))),
        ("a = -9223372036854775808", equals(A, Constant(-(2**63)))),
        ("a = 9223372036854775808.0", equals(A, Constant(2.0**63))),
        # names
        ("User.a = 1", equals(A)),
        ("user = 1", equals(user("user"))),
        ("sys = 1", equals(user("sys"))),
        ("[user].a = 1", None),
        ("SYS.label = 'x'", Comparison("=", system("Label"), Constant("x"))),
        ("sys.[Label] = 'x'", Comparison("=", system("Label"), Constant("x"))),
        ('"http://a/b" = 1', equals(user("http://a/b"))),
        ('user."a ""b"" c" = 1', equals(user('a "b" c'))),
        ("[AND] = 1", equals(user("AND"))),
        ("[a] = 'OR' OR [OR] = 1", Or((equals(A, Constant("OR")), equals(user("OR"))))),
        ("[a]]b] = 1", equals(user("a]b"))),
        ("set = 1 AND remove = 1", And((equals(user("set")), equals(user("remove"))))),
        ("p = 1 AND property = 1", And((equals(user("p")), equals(user("property"))))),
        # functions
        ("p('a') = 1", Comparison("=", NamedProperty(Constant("a")), ONE)),
        ("PROPERTY('a' + b) = 1", Comparison("=", NamedProperty(Arithmetic(Constant("a"), (("+", B),))), ONE)),
        ("newid() = a", Comparison("=", NewId(), A)),
    ],
)
def test_texts_and_their_trees(text: str, expected: Predicate | None) -> None:
    if expected is None:
        with pytest.raises(SqlError):
            parse(text)
    else:
        # As texts, because True equals 1 equals 1.0; spellings differ in case.
        assert repr(parse(text)).lower() == repr(expected).lower()


def test_names_are_compared_folded_and_kept_as_they_were_written() -> None:
    tree = parse("Color = 1 AND sys.LABEL = 'x'")
    assert isinstance(tree, And)
    first, second = tree.operands
    assert isinstance(first, Comparison) and isinstance(second, Comparison)
    assert isinstance(first.left, UserProperty) and (first.left.name, first.left.spelling) == ("color", "Color")
    assert second.left == system("label") and second.left != user("label")


@given(predicates(st.none() | st.booleans() | st.integers(-9, 9) | st.just(1.5) | st.text("a'b", max_size=3),
                  (user("a"), user("b ]c"), system("Label")), with_failures=True))  # fmt: skip
def test_a_tree_that_is_written_out_is_read_as_itself(tree: Predicate) -> None:
    text = text_of_predicate(tree)
    assume(len(text) <= 1_024 and text.count("(") + text.count("NOT") <= 16)
    assert repr(parse(text)) == repr(tree)


# Parameters


def test_parameters_are_replaced_by_their_values() -> None:
    parameters = {
        "@Text": "x", "n": Int(5), "@when": Timestamp(3), "@span": Described(Symbol("com.microsoft:timespan"), 7),
        "@none": None,
    }  # fmt: skip
    tree = parse_filter("a IN (@text, @N, @when, @span, @none, @missing)", values(parameters))
    assert tree == In(A, tuple(map(Constant, ("x", 5, Instant(30_000), TimeSpan(7), None, None))))


def test_parameters_stand_for_names_patterns_and_escapes() -> None:
    assert parse("property(@name) = 1", name="b") == Comparison("=", NamedProperty(Constant("b")), ONE)
    assert parse("a LIKE @p ESCAPE @e", p="x!%", e="!") == Like(A, parse_pattern("x!%", "!"))
    assert parse("a LIKE @missing") == Like(A, None)
    assert parse("a LIKE 'x' ESCAPE @missing") == Like(A, None)


# Mistakes


@pytest.mark.parametrize(
    ("text", "at", "token", "why"),
    [
        ("", 0, "", "a value is needed"),
        ("a", 0, "a", "a value stands where a condition is needed"),
        ("TRUE", 0, "TRUE", "compare it with something"),
        ("a = 1 b", 6, "b", "AND, OR or the end"),
        ("a = 1 [AND] b = 1", 6, "[AND]", "AND, OR or the end"),
        ("a = 1)", 5, ")", "AND, OR or the end"),
        ("(a = 1", 6, "", r"\) is needed"),
        ("a =", 3, "", "a value is needed"),
        ("= 1", 0, "=", "a value is needed"),
        ("a = b = c", 6, "=", "AND, OR or the end"),
        ("a = (b = c)", 4, "(", "a condition stands where a value is needed"),
        ("(a = 1) + 2 = 3", 0, "(", "a condition stands where a value"),
        ("-(a = 1) = 3", 1, "(", "a condition stands where a value"),
        ("1 + (a = 1) = 3", 4, "(", "a condition stands where a value"),
        ("2 * (a = 1) = 3", 4, "(", "a condition stands where a value"),
        ("a AND b = 1", 0, "a", "a value stands where"),
        ("b = 1 AND a", 10, "a", "a value stands where"),
        ("b = 1 OR a", 9, "a", "a value stands where"),
        ("b = 1 OR c = 2 OR a", 18, "a", "a value stands where"),
        ("a OR b = 1", 0, "a", "a value stands where"),
        ("NOT a", 4, "a", "a value stands where"),
        ("a NOT = 1", 6, "=", "IN or LIKE is needed"),
        ("a IS 1", 5, "1", "NULL is needed"),
        ("a IS NOT 1", 9, "1", "NULL is needed"),
        ("(a = 1) IS NULL", 0, "(", "a condition stands"),
        ("a IN 1", 5, "1", r"\( is needed"),
        ("a IN ()", 6, ")", "a value is needed"),
        ("a IN (1,)", 8, ")", "a value is needed"),
        ("a IN (1", 7, "", r"\) is needed"),
        ("a LIKE b", 7, "b", "a text constant"),
        ("a LIKE 1", 7, "1", "a text constant"),
        ("a LIKE 'x' ESCAPE 'yy'", 18, "'yy'", "one character"),
        ("a LIKE 'x' ESCAPE ''", 18, "''", "one character"),
        ("a LIKE 'x' ESCAPE b", 18, "b", "a text constant"),
        ("a LIKE 'x!' ESCAPE '!'", 7, "'x!'", "ends in its escape character"),
        ("EXISTS(1)", 7, "1", "asks for a property"),
        ("EXISTS(a + b)", 9, "+", r"\) is needed"),
        ("EXISTS a", 7, "a", r"\( is needed"),
        ("AND = 1", 0, "AND", "a keyword cannot stand here"),
        ("a = LIKE", 4, "LIKE", "a keyword cannot stand here"),
        ("sys.NOT = 1", 4, "NOT", "a keyword cannot stand here"),
        ("user.'a' = 1", 5, "'a'", "the name of a property is needed"),
        ("order.id = 1", 0, "order", "the scopes are sys and user"),
        ("max(a) = 1", 0, "max", "no such function"),
        ("newid(1) = a", 6, "1", r"\) is needed"),
        ("p() = 1", 2, ")", "a value is needed"),
        ("a = 9223372036854775808", 4, "9223372036854775808", "64 bits"),
        ("a = +9223372036854775808", 4, "+", "64 bits"),
        ("a = -9223372036854775809", 5, "9223372036854775809", "64 bits"),
        ("a = 1; b = 2", 5, ";", "AND, OR or the end"),
        ("a = 1 --", 8, "", "a value is needed"),  # no comment
        ("a = @p.b", 6, ".", "AND, OR or the end"),
    ],
)
def test_a_mistake_is_refused_with_place_and_word(text: str, at: int, token: str, why: str) -> None:
    with pytest.raises(SqlError, match=why) as refused:
        parse(text)
    error = refused.value
    assert (error.condition, error.at, error.token) == (ARGUMENT_ERROR, at, token)
    assert f"at character {at + 1}" in error.text and (not token or f"near '{token}'" in error.text)


def test_a_pattern_that_is_a_parameter_of_another_kind_is_refused() -> None:
    for value in (5, True, Timestamp(5)):
        with pytest.raises(SqlError, match="a text constant or a parameter with a text"):
            parse("a LIKE @p", p=value)


# Limits


def refusal(text: str) -> str:
    with pytest.raises(SqlError) as refused:
        parse(text)
    return refused.value.text


def test_a_text_of_the_longest_length_is_read_and_one_character_more_is_not() -> None:
    text = "a = '" + "x" * (1_024 - 6) + "'"
    assert len(text) == 1_024 and parse(text)
    assert "1025 characters, and at most 1024 are allowed" in refusal(text + " ")


def test_512_nodes_are_read_and_one_more_is_not() -> None:
    text = "a=1" + "+1" * 508  # 509 constants, a, the sum and the comparison
    assert parse(text)
    assert "more than 512 names, constants and operators" in refusal(text + "+1")


@pytest.mark.parametrize(
    ("one", "between"), [("a=1", " OR "), ("a=b", " AND "), ("a IS NOT NULL", " OR "), ("10", ",")]
)
def test_what_the_longest_length_holds_of_short_operands_is_read(one: str, between: str) -> None:
    frame = "a IN (%s)" if between == "," else "%s"
    many = (1_024 - len(frame) + 2 + len(between)) // len(one + between)
    assert parse(frame % between.join([one] * many))


@pytest.mark.parametrize(
    "nested",
    [
        lambda depth: "(" * depth + "a = 1" + ")" * depth,
        lambda depth: "a = " + "(" * depth + "1" + ")" * depth,
        lambda depth: "NOT " * depth + "a = 1",
        lambda depth: "- " * depth + "a = 1",
        lambda depth: "p(" * depth + "'a'" + ")" * depth + " = 1",
        lambda depth: "EXISTS(" + "p(" * (depth - 1) + "'a'" + ")" * depth,
        lambda depth: "NOT (" * (depth // 2) + "a = 1" + ")" * (depth // 2),
    ],
)
def test_16_levels_are_read_and_one_more_is_not(nested) -> None:
    assert parse(nested(16))
    deeper = nested(18) if nested(17) == nested(16) else nested(17)
    assert "nest deeper than 16 levels" in refusal(deeper)


def test_levels_side_by_side_are_no_deeper_than_one() -> None:
    assert parse(" AND ".join(["(NOT (-a = p('b')))"] * 20))
    assert parse("a IN (" + ",".join(["(1)"] * 50) + ")")
    assert parse(" OR ".join(["EXISTS(a)"] * 50))


@pytest.mark.parametrize(
    "closed", ["(a = 1)", "NOT a = 1", "-a = 1", "a = - -b", "EXISTS(a)", "p('a') = 1", "newid() = a"]
)
def test_levels_that_are_closed_give_none_to_those_behind(closed: str) -> None:
    assert parse(f"{closed} AND " + "(" * 16 + "a = 1" + ")" * 16)
    assert "deeper than 16 levels" in refusal(f"{closed} AND " + "(" * 17 + "a = 1" + ")" * 17)
