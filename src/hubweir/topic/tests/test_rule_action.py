"""SET and REMOVE: what they read as, what they change, what they keep, and where they are refused or fail."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from hubweir.amqp.types.values import Char, Decimal64, Described, Float, Int, Symbol, Timestamp, UInt
from hubweir.errors import ARGUMENT_ERROR
from hubweir.topic import rule_action, sql_evaluate, sql_reader
from hubweir.topic.filtered_message import EncodedMessage
from hubweir.topic.rule_action import (
    PROPERTIES_LIMIT_BYTES,
    PROPERTY_LIMIT_BYTES,
    MessageChanges,
    run_action,
)
from hubweir.topic.sql_lexer import SqlError
from hubweir.topic.sql_syntax import Constant, RemoveProperty, SetProperty
from hubweir.topic.sql_values import EvaluationFailed, TimeSpan
from hubweir.topic.tests.given_messages import FRESH_ID, action, message, new_id
from hubweir.topic.tests.written_filters import system, user

SET_A, SET_B = SetProperty(user("a"), Constant(1)), SetProperty(user("b"), Constant(2))
ORDER = {"Color": "red", "quantity": Int(10), "price": 2.5, "priority": "high"}


def run(text: str, seen: EncodedMessage, **parameters: object) -> MessageChanges:
    return run_action(action(text, **parameters), seen, new_id)


def set_on(text: str, properties: Mapping[str, object], **parameters: object) -> Mapping[str, object]:
    """The application properties after an action."""
    return run(text, message(properties), **parameters).application_properties


@pytest.mark.parametrize(
    "text",
    [
        "SET a = 1 SET b = 2",
        "SET a=1 set b=2",
        "SET a = 1; SET b = 2",
        "SET a = 1; SET b = 2;",
        "SET a = 1, SET b = 2",
        "; SET a = 1 ,;; SET b = 2 ;",
        "\nSET a = 1\nSET b = 2\n",
        "SET user.a = 1 SET [b] = 2",
    ],
)
def test_statements_are_separated_by_semicolons_commas_or_blanks_alone(text: str) -> None:
    assert action(text).statements == (SET_A, SET_B)


def test_removals_and_the_system_scope() -> None:
    text = "REMOVE a REMOVE \"b c\" SET sys.label = 'x' REMOVE SYS.To"
    expected = (
        RemoveProperty(user("a")),
        RemoveProperty(user("b c")),
        SetProperty(system("Label"), Constant("x")),
        RemoveProperty(system("to")),
    )
    assert action(text).statements == expected


@pytest.mark.parametrize(
    ("text", "at", "token", "why"),
    [
        ("", 0, "", "SET or REMOVE is needed"),
        (" ; ", 3, "", "SET or REMOVE is needed"),
        ("a = 1", 0, "a", "SET or REMOVE is needed"),
        ("SET a", 5, "", "= is needed"),
        ("SET a 1", 6, "1", "= is needed"),
        ("SET a = ", 8, "", "a value is needed"),
        ("SET a = 1, b = 2", 11, "b", "SET or REMOVE is needed"),
        ("SET a = (b = 1)", 8, "(", "a condition stands where a value is needed"),
        ("SET a = b = 1", 10, "=", "SET or REMOVE is needed"),
        ("SET SET = 1", 4, "SET", "a keyword cannot stand here"),
        ("SET a = REMOVE", 8, "REMOVE", "a keyword cannot stand here"),
        ("SET 'a' = 1", 4, "'a'", "the name of a property"),
        ("SET @a = 1", 4, "@a", "the name of a property"),
        ("SET p('a') = 1", 5, "(", "= is needed"),
        ("REMOVE", 6, "", "the name of a property"),
        ("SET sys.Nothing = 1", 4, "sys", "sys.Nothing cannot be set or removed; of the system properties Label"),
        ("SET sys.SequenceNumber = 1", 4, "sys", "cannot be set"),
        ("SET sys.EnqueuedTimeUtc = 1", 4, "sys", "cannot be set"),
        ("REMOVE sys.DeliveryCount", 7, "sys", "cannot be set or removed"),
        ("SET order.id = 1", 4, "order", "the scopes are sys and user"),
    ],
)
def test_a_mistake_is_refused_with_place_and_word(text: str, at: int, token: str, why: str) -> None:
    with pytest.raises(SqlError, match=why.replace("(", r"\(")) as refused:
        action(text)
    assert (refused.value.condition, refused.value.at, refused.value.token) == (ARGUMENT_ERROR, at, token)


def test_32_sets_are_taken_and_one_more_is_not() -> None:
    sets = "SET a=1 " * 32
    assert len(action(sets + "REMOVE b REMOVE c").statements) == 34
    with pytest.raises(SqlError, match="at most 32 SETs") as refused:
        action(sets + "SET a=1")
    assert refused.value.at == len(sets)


def test_length_nodes_and_depth_are_those_of_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SqlError, match="1024 are allowed"):
        action("SET a = '" + "x" * 1_015 + "'")
    with pytest.raises(SqlError, match="deeper than 16"):
        action("SET a = " + "(" * 17 + "1" + ")" * 17)
    monkeypatch.setattr(sql_reader, "SQL_LIMIT", 2_048)
    with pytest.raises(SqlError, match="more than 512 names"):
        action("SET a = 1" + "+1" * 512)


# SB-109


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("SET quantity = quantity / 2; REMOVE priority", {"quantity": Int(5), "priority": ...}),
        ("SET new = 'x'", {"new": "x"}),
        ("SET New = 1 SET NEW = 2", {"New": 2}),
        ("SET COLOR = 'blue'", {"Color": "blue"}),
        ("REMOVE color", {"Color": ...}),
        ("REMOVE missing", {}),
        ("SET a = quantity SET b = a + 1", {"a": Int(10), "b": 11}),
        ("SET a = 1 REMOVE a", {}),
        ("REMOVE color SET color = 5", {"Color": ..., "color": 5}),
        ("SET a = color + '-' + quantity", {"a": "red-10"}),
        ("SET a = newid()", {"a": FRESH_ID}),
        ("SET a = @p", {"a": 7}),
        ("SET a = @missing", {"a": None}),
        ("SET a = missing", {"a": None}),
        ("SET color = missing", {"Color": None}),
        ("SET color = NULL SET color = 5", {"Color": 5}),
        ("SET quantity = missing / 0", {"quantity": None}),
        ("SET a = p('Color')", {"a": "red"}),
        ("SET sys.ScheduledEnqueueTimeUtc = quantity / 0", {}),
    ],
)
def test_what_an_action_does_to_application_properties(text: str, changed: dict[str, object]) -> None:
    expected = {name: value for name, value in {**ORDER, **changed}.items() if value is not ...}
    found = set_on(text, ORDER, p=Int(7))
    assert found == expected and list(map(type, found.values())) == list(map(type, expected.values()))


@pytest.mark.parametrize(
    ("text", "existing", "expected"),
    [
        ("SET a = 5", Int(1), Int(5)),
        ("SET a = 5", "x", "5"),
        ("SET a = '5'", UInt(1), UInt(5)),
        ("SET a = 5", Float(1), Float(5)),
        ("SET a = 2.5", Int(1), Int(2)),
        ("SET a = 'done'", Int(1), "done"),  # no integer: the type of the value
        ("SET a = 5000000000", Int(1), 5_000_000_000),
        ("SET a = 'x'", Char("y"), Char("x")),
    ],
)
def test_a_property_keeps_its_type_where_the_value_can_be_converted(
    text: str, existing: object, expected: object
) -> None:
    found = set_on(text, {"a": existing})["a"]
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    "value",
    [
        Int(5), UInt(5), Float(0.5), Symbol("s"), Char("c"), Timestamp(5), UUID(int=5), b"bytes", None,
        Decimal64(bytes(8)), Described(Symbol("com.microsoft:uri"), "http://a"), Described(Symbol("x"), [1]),
    ],
)  # fmt: skip
def test_a_property_that_is_copied_keeps_value_and_type(value: object) -> None:
    found = set_on("SET b = a", {"a": value})
    assert found["b"] == value and type(found["b"]) is type(value)


def test_all_spellings_of_a_name_are_removed_and_the_first_is_set() -> None:
    spelt = {"a": 1, "A": 2, "b": 3}
    assert set_on("REMOVE a", spelt) == {"b": 3}
    assert set_on("SET A = 7", spelt) == {"a": 7, "A": 2, "b": 3}
    assert set_on("REMOVE a SET c = a", spelt) == {"b": 3, "c": None}


def test_system_properties_that_are_set() -> None:
    seen = message(ORDER, subject="order", to="here", message_id="m", ttl=5)
    changes = run(
        "SET sys.Label = 'x' + sys.Label SET sys.Subject = sys.label + sys.To; REMOVE sys.To, "
        "SET sys.CorrelationId = quantity SET sys.MessageId = newid() SET sys.TimeToLive = '00:00:01' "
        "SET sys.PartitionKey = 'k' SET a = sys.To",
        seen,
    )
    assert changes.system_properties == {
        "label": "xorderhere", "to": None, "correlationid": "10", "messageid": str(FRESH_ID),
        "timetolive": TimeSpan(10_000_000), "partitionkey": "k",
    }  # fmt: skip
    assert changes.application_properties == {**ORDER, "a": None}
    assert seen.system_property("label") == "order"  # the message stays as it is


@pytest.mark.parametrize(
    "name",
    [
        "Label", "Subject", "To", "ReplyTo", "CorrelationId", "ContentType", "SessionId", "ReplyToSessionId",
        "MessageId", "PartitionKey",
    ],
)  # fmt: skip
def test_each_settable_name_can_be_set(name: str) -> None:
    found = run(f"SET sys.{name.upper()} = 'x'", message()).system_properties
    assert found == {"label" if name == "Subject" else name.lower(): "x"}


def test_a_system_property_and_a_user_property_of_one_name_are_two() -> None:
    seen = message({"label": "mine"}, subject="order")
    found = run("REMOVE sys.Label SET a = label SET b = sys.Label", seen)
    assert found == MessageChanges({"label": "mine", "a": "mine", "b": None}, {"label": None})
    assert run("REMOVE label SET a = sys.Label", seen) == MessageChanges({"a": "order"}, {})


def test_label_and_subject_are_one_property() -> None:
    found = run("SET sys.Label = 'x' SET a = sys.Subject SET sys.Subject = 'y' SET b = sys.Label", message())
    assert found == MessageChanges({"a": "x", "b": "y"}, {"label": "y"})
    assert run("SET sys.Label = 'x' REMOVE sys.Subject", message()).system_properties == {"label": None}


def test_time_to_live_by_arithmetic_and_parameter() -> None:
    second = Described(Symbol("com.microsoft:timespan"), 10_000_000)
    found = run("SET sys.TimeToLive = sys.TimeToLive + @second", message(ttl=500), second=second)
    assert found.system_properties == {"timetolive": TimeSpan(15_000_000)}


def test_the_time_of_a_schedule_stays() -> None:
    assert (
        run("SET sys.ScheduledEnqueueTimeUtc = 5 REMOVE sys.scheduledenqueuetimeutc", message()).system_properties == {}
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SET a = sys.Nothing", "no system property 'Nothing'"),
        ("SET a = 1 / 0", "divided by zero"),
        ("SET sys.TimeToLive = 5", "TimeToLive holds a time span"),
        ("SET sys.SessionId = a", "129 characters"),
        ("SET sys.Label = at", "cannot hold"),
        ("SET b = p('list')", "no message can carry"),
    ],
)
def test_what_cannot_be_done_fails(text: str, why: str) -> None:
    with pytest.raises(EvaluationFailed, match=why):
        run(text, message({"a": "x" * 129, "at": Timestamp(5), "list": Described(Symbol("x"), [1])}))


def test_steps_of_all_statements_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_evaluate, "STEP_LIMIT", 4)
    assert run("SET a = 1 + 1 SET b = 2", message())
    with pytest.raises(EvaluationFailed, match="more than 4 steps"):
        run("SET a = 1 + 1 SET b = 2 SET c = 3", message())


def test_one_property_and_all_of_them_have_their_limits() -> None:
    fits = "x" * (PROPERTY_LIMIT_BYTES - 5)  # a head of five bytes
    assert set_on("SET b = a REMOVE a", {"a": fits}) == {"b": fits}
    with pytest.raises(EvaluationFailed, match="more than 32768 bytes"):
        set_on("SET b = a + 'y'", {"a": fits})
    assert PROPERTIES_LIMIT_BYTES == 64 * 1024
    with pytest.raises(EvaluationFailed, match="more than 65536 bytes"):
        set_on("SET b = a SET c = a SET d = a", {"a": "x" * 20_000})
    assert set_on("SET b = a SET c = a", {"a": "x" * 20_000})


def test_what_an_action_leaves_alone_is_not_encoded_to_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of rules may act on one message of a thousand properties."""
    measured: list[object] = []
    size = rule_action.encoded_size
    monkeypatch.setattr(rule_action, "encoded_size", lambda amqp: measured.append(amqp) or size(amqp))
    properties = {f"p{number}": number for number in range(1_000)}
    made = set_on("SET P7 = 8; SET new = 9; REMOVE p8", properties)
    assert made == {each: value for each, value in properties.items() if each != "p8"} | {"p7": 8, "new": 9}
    assert len(measured) == 4 and not any(isinstance(each, dict) for each in measured)
