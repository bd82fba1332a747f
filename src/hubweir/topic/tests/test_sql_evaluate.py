"""What filters say of messages: three values, kinds, missing properties, failures, steps; held against SQLite too."""

import sqlite3
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.amqp.types.values import Described, Float, Int, Symbol, Timestamp, UInt
from hubweir.topic import sql_evaluate
from hubweir.topic.filtered_message import SYSTEM_PROPERTIES, BrokerValues
from hubweir.topic.sql_evaluate import Evaluation
from hubweir.topic.sql_syntax import And, Not, Or, Predicate
from hubweir.topic.sql_values import EvaluationFailed
from hubweir.topic.tests.given_messages import message, new_id, sql_filter, truth
from hubweir.topic.tests.written_filters import predicates, text_of_predicate, user

BLUE = message({"color": "blue", "quantity": Int(11), "price": 12.5, "Empty": None, "a b": True})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # SB-105
        ("color='blue' AND quantity > 10", True),
        ("color='blue' AND quantity > 10.5", True),
        ("color='blue' AND price > 12", True),
        ("color='Blue'", False),
        ("COLOR='blue'", True),
        ("shape = 'round'", None),
        ("shape <> 'round'", None),
        ("shape IS NULL", True),
        ("shape IS NOT NULL", False),
        ("empty IS NULL", True),
        ("color IS NULL", False),
        ("NOT (shape = 1)", None),
        ("NOT (color = 'red')", True),
        # SB-106
        ("color IN ('red', 'blue')", True),
        ("color IN ('red', 'green')", False),
        ("color IN ('red', NULL)", None),
        ("color IN (NULL, 'blue')", True),
        ("color IN ('red', 5)", None),
        ("color IN (NULL, 'red')", None),
        ("color NOT IN (5, 'red', 'green')", None),
        ("shape IN ('red')", None),
        ("color NOT IN ('red', 'green')", True),
        ("color NOT IN ('red', NULL)", None),
        ("quantity IN (11.0)", True),
        ("quantity IN (price, quantity)", True),
        ("EXISTS(color)", True),
        ("EXISTS(shape)", False),
        ("EXISTS(empty)", True),
        ("NOT EXISTS(shape)", True),
        ("EXISTS(sys.Label)", False),
        ("EXISTS(p('COL' + 'or'))", True),
        ("EXISTS(p(quantity))", False),
        ("EXISTS(p('sys.DeliveryCount'))", True),
        ("color LIKE 'bl%'", True),
        ("color LIKE 'BL%'", False),
        ("color NOT LIKE 'r%'", True),
        ("quantity LIKE '1%'", None),
        ("shape LIKE '%'", None),
        ("color LIKE @missing", None),
        ("color = @missing", None),
        ("color LIKE 'b!l%' ESCAPE '!'", True),
        ("[a b] = TRUE", True),
        ('"a b" = FALSE', False),
        # arithmetic
        ("quantity * 2 + 3 = 25", True),
        ("quantity / 2 = 5", True),
        ("quantity % 4 = 3", True),
        ("-quantity = -11", True),
        ("+quantity = 11", True),
        ("+color = 'blue'", None),
        ("price * 2 = 25", True),
        ("shape + 1 = 1", None),
        ("color + 'ish' = 'blueish'", True),
        ("color * 2 = 1", None),
        # kinds
        ("color = 1", None),
        ("color <> 1", None),
        ("quantity = '11'", None),
        ("[a b] = 1", None),
        ("color = NULL", None),
        ("NULL = NULL", None),
        ("1 = 1.0", True),
        ("'a' < 'b'", True),
        ("TRUE > FALSE", None),
        # functions
        ("property('color') = 'blue'", True),
        ("p('Color') = 'blue'", True),
        ("p(shape) = 'blue'", None),
        ("p('sys.label') IS NULL", True),
        ("newid() = newid()", True),
        ("newid() = color", None),
    ],
)
def test_what_a_filter_says(text: str, expected: bool | None) -> None:
    assert truth(text, BLUE) is expected


ONE_OF_EACH = {True: "color = 'blue'", False: "color = 'red'", None: "shape = 'round'"}


@pytest.mark.parametrize("left", ONE_OF_EACH)
@pytest.mark.parametrize("right", ONE_OF_EACH)
def test_the_truth_tables(left: bool | None, right: bool | None) -> None:
    """AND is the least of its operands and OR the greatest, where unknown lies between false and true."""
    order = [False, None, True]
    both = f"{ONE_OF_EACH[left]} %s {ONE_OF_EACH[right]}"
    assert truth(both % "AND", BLUE) is min(left, right, key=order.index)
    assert truth(both % "OR", BLUE) is max(left, right, key=order.index)
    assert truth(f"NOT {ONE_OF_EACH[left]}", BLUE) is order[2 - order.index(left)]


SOME = message(
    message_id=UUID(int=5), subject="order", to="here", reply_to="there", correlation_id="c",
    content_type=Symbol("text"), group_id="s", reply_to_group_id="r", ttl=60_000, annotations={
        Symbol("x-opt-partition-key"): "k", Symbol("x-opt-scheduled-enqueue-time"): Timestamp(9_000),
        Symbol("x-opt-deadletter-source"): "orders",
    },
    broker=BrokerValues(
        sequence_number=7, enqueued_sequence_number=3, enqueued_time_ms=10_000, expires_at_ms=70_000,
        locked_until_ms=40_000, lock_token=UUID(int=9), delivery_count=2, state=1, was_forwarded=True,
    ),
)  # fmt: skip
AS_TIME = {"t": Timestamp(9_000), "e": Timestamp(10_000), "x": Timestamp(70_000), "l": Timestamp(40_000)}
AS_SPAN = {"span": Described(Symbol("com.microsoft:timespan"), 60 * 10_000_000)}


@pytest.mark.parametrize(
    "text",
    [
        "sys.MessageId = '00000000-0000-0000-0000-000000000005'", "sys.Label = 'order'", "SYS.SUBJECT = 'order'",
        "sys.To = 'here'", "sys.ReplyTo = 'there'", "sys.CorrelationId = 'c'", "sys.ContentType = 'text'",
        "sys.SessionId = 's'", "sys.ReplyToSessionId = 'r'", "sys.TimeToLive = @span", "sys.PartitionKey = 'k'",
        "sys.ScheduledEnqueueTimeUtc = @t", "sys.SequenceNumber = 7", "sys.EnqueuedSequenceNumber = 3",
        "sys.EnqueuedTimeUtc = @e", "sys.ExpiresAtUtc = @x", "sys.LockedUntilUtc = @l", "sys.LockToken IS NOT NULL",
        "sys.DeadLetterSource = 'orders'", "sys.DeliveryCount = 2", "sys.State = 1",
        "sys.ExpiresAtUtc - sys.EnqueuedTimeUtc = sys.TimeToLive", "sys.EnqueuedTimeUtc + @span = sys.ExpiresAtUtc",
        "sys.TimeToLive > sys.ExpiresAtUtc - sys.LockedUntilUtc",
    ],
)  # fmt: skip
def test_system_properties(text: str) -> None:
    assert truth(text, SOME, **AS_TIME, **AS_SPAN) is True


def test_a_system_property_without_a_value_is_null() -> None:
    bare = message()
    without = SYSTEM_PROPERTIES - {"deliverycount", "state"}
    for name in without:
        assert truth(f"sys.{name} IS NULL", bare) is True
        assert truth(f"sys.{name} = 'x'", bare) is None
    assert truth("sys.DeliveryCount = 0 AND sys.State = 0", bare) is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sys.Nothing = 1", "no system property 'Nothing'"),
        ("sys.Nothing IS NULL", "no system property"),
        ("EXISTS(sys.Nothing)", "no system property"),
        ("p('sys.Nothing') = 1", "no system property"),
        ("quantity / 0 = 1", "divided by zero"),
        ("quantity % (quantity - 11) = 1", "divided by zero"),
        ("9223372036854775807 + quantity = 1", "64 bits"),
        ("shape = 1 AND quantity / 0 = 1", "divided by zero"),
        ("shape = 1 OR quantity / 0 = 1", "divided by zero"),
    ],
)
def test_what_has_no_answer_fails(text: str, why: str) -> None:
    with pytest.raises(EvaluationFailed, match=why):
        truth(text, BLUE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("color = 'red' AND sys.Nothing = 1", False),
        ("color = 'blue' OR sys.Nothing = 1", True),
        ("color IN ('blue', quantity / 0)", True),
        ("shape IN (quantity / 0)", None),
        ("NOT (color = 'red' AND sys.Nothing = 1)", True),
    ],
)
def test_what_is_decided_before_a_failure_stands(text: str, expected: bool | None) -> None:
    assert truth(text, BLUE) is expected


def test_each_newid_is_a_fresh_one() -> None:
    ids = iter(range(100))
    run = Evaluation(BLUE, lambda: UUID(int=next(ids)))
    assert run.truth(sql_filter("newid() <> newid()").predicate) is True
    assert next(ids) == 2


# Steps


def steps_of(text: str, seen=BLUE) -> int:
    """The fewest steps with which the filter can be evaluated."""
    for count in range(10_001):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sql_evaluate, "STEP_LIMIT", count)
            try:
                truth(text, seen)
            except EvaluationFailed as error:
                assert f"more than {count} steps" in str(error)
            else:
                return count
    raise AssertionError("no end")


def test_every_node_that_is_met_is_a_step() -> None:
    assert steps_of("color = 'blue'") == 3
    assert steps_of("color = 'blue' AND NOT quantity = 1") == 8
    assert steps_of("color = 'red' AND NOT quantity = 1") == 4
    assert steps_of("p('color') = -quantity") == 6
    assert steps_of("color LIKE '%l%'") == 6


def test_a_hostile_text_ends_at_the_limit_of_steps() -> None:
    hostile = message({"a": "a" * 30_000})
    with pytest.raises(EvaluationFailed, match="more than 10000 steps"):
        truth("a LIKE '%a_b%'", hostile)
    assert truth("a LIKE '%a_b%'", message({"a": "a" * 4_000})) is False


def test_the_largest_filter_needs_few_steps() -> None:
    assert steps_of("quantity IN (" + ",".join(["1"] * 254) + ")") == 256


# Held against SQLite: another engine with three values. Its kinds compare otherwise, so numbers and texts stay apart.

COLUMNS = ("a", "b", "c")
NUMBERS = st.none() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -1.5])
TEXTS = st.none() | st.text("ab", max_size=3)


def without_booleans(values: st.SearchStrategy[object], number_like: bool) -> st.SearchStrategy[Predicate]:
    trees = predicates(values, [user(name) for name in COLUMNS])
    return trees.filter(lambda tree: "EXISTS" not in text_of_predicate(tree)).filter(
        lambda tree: not (number_like and "Like" in text_of_predicate(tree))
    )


def asked_of_sqlite(tree: Predicate, row: tuple[object, ...]) -> bool | None:
    with sqlite3.connect(":memory:") as database:
        database.execute("PRAGMA case_sensitive_like = ON")
        text = text_of_predicate(tree).replace("user.", "")
        columns = ", ".join(f"? AS {name}" for name in COLUMNS)
        ((found,),) = database.execute(f"SELECT {text} FROM (SELECT {columns})", row)
    database.close()
    return None if found is None else bool(found)


@given(without_booleans(NUMBERS, number_like=True), st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_conditions_on_numbers_are_what_sqlite_says(tree: Predicate, row: tuple[object, ...]) -> None:
    seen = message(dict(zip(COLUMNS, row, strict=True)))
    assert Evaluation(seen, new_id).truth(tree) is asked_of_sqlite(tree, row)


@given(without_booleans(TEXTS, number_like=False), st.tuples(TEXTS, TEXTS, TEXTS))
def test_conditions_on_texts_are_what_sqlite_says(tree: Predicate, row: tuple[object, ...]) -> None:
    seen = message(dict(zip(COLUMNS, row, strict=True)))
    assert Evaluation(seen, new_id).truth(tree) is asked_of_sqlite(tree, row)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "%"])
def test_arithmetic_of_integers_is_what_sqlite_says(symbol: str) -> None:
    database = sqlite3.connect(":memory:")
    for left in range(-7, 8):
        for right in (-3, -2, 1, 2, 3):
            ((expected,),) = database.execute(f"SELECT ? {symbol} ?", (left, right))
            assert truth(f"a {symbol} b = {expected}", message({"a": left, "b": Int(right)})) is True
    database.close()


# Laws


MIXED = st.sampled_from([None, True, False, 1, 1.0, -2, 0.5, "a", "", UInt(1), Float(0.5), b"a", Timestamp(1)])


@given(
    predicates(st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2), [user("a"), user("b")]),
    predicates(st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2), [user("a"), user("b")]),
    st.dictionaries(st.sampled_from(["a", "b"]), MIXED),
)
def test_laws_of_three_values(p: Predicate, q: Predicate, properties: dict[str, object]) -> None:
    seen = message(properties)

    def of(tree: Predicate) -> bool | None:
        return Evaluation(seen, new_id).truth(tree)

    assert of(And((p, q))) is of(And((q, p)))
    assert of(Or((p, q))) is of(Not(And((Not(p), Not(q)))))
    assert of(Not(Not(p))) is of(p)
    assert of(And((p, Or((p, q))))) is of(p)
    assert of(p) in (True, False, None)
