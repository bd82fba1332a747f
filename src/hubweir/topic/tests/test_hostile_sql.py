"""Attack 84, and texts at random: what a client writes or sends is refused or evaluated, soon and in little memory."""

import sys
import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.amqp.types.values import Described, Symbol, Timestamp
from hubweir.errors import ServiceError
from hubweir.topic import sql_reader
from hubweir.topic.rule import Rule, TrueFilter
from hubweir.topic.simple_filter import conjunctions_of
from hubweir.topic.sql_lexer import SqlError
from hubweir.topic.sql_parser import parse_filter
from hubweir.topic.tests.given_messages import action, message, new_id, sql_filter
from hubweir.topic.tests.plain_copies import copies_of


def refusal(text: str) -> str:
    with pytest.raises(SqlError) as refused:
        parse_filter(text, {})
    assert len(refused.value.text) < 500
    return refused.value.text


@pytest.mark.parametrize("opening", ["(", "NOT ", "NOT (", "- ", "-(", "p(", "EXISTS(", "a IN (", "(((", "a = -("])
def test_10000_levels_are_refused_and_no_stack_ends(opening: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "1024 are allowed" in refusal(opening * 10_000)
    # The limit of levels holds where the one of characters does not.
    assert sys.getrecursionlimit() <= 10_000
    monkeypatch.setattr(sql_reader, "SQL_LIMIT", 10_000_000)
    text = refusal(opening * 10_000)
    assert "deeper than 16 levels" in text or "needed" in text or "stands" in text


def test_a_giant_in_is_refused_before_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a IN (" + ",".join(["1"] * 1_000_000) + ")"
    assert "1024 are allowed" in refusal(text)
    monkeypatch.setattr(sql_reader, "SQL_LIMIT", 10_000_000)
    assert "more than 512 names" in refusal(text[:200_000] + "1)")


def test_giant_names_and_texts_are_refused_in_few_words() -> None:
    for text in ("a" * 100_000, "'" + "x" * 100_000, "[" * 100_000, "a = " + "9" * 100_000, "@" * 100_000):
        assert "characters, and at most 1024 are allowed" in refusal(text)
        refusal(text[:1_000])


@pytest.mark.parametrize("wildcards", [1, 12, 60, 500])
@pytest.mark.parametrize("unit", ["%a", "a%", "_%", "%_a", "%a_a", "%ab_ab_"])
def test_wildcards_end_within_the_steps(wildcards: int, unit: str) -> None:
    pattern = (unit * wildcards)[:900]
    chosen = sql_filter(f"a LIKE '{pattern}z'")
    for text in ("a" * 32_000, "ab" * 16_000, "a" * 60, ""):
        found = copies_of([Rule("r", chosen)], message({"a": text}), new_id)
        assert not found.plain
        assert not found.failed or "more than 10000 steps" in found.failed[0].description


OF_EVERY_KIND = [
    None, True, 0, -1, 2**63 - 1, -(2**63), 1.5, float("nan"), float("inf"), "", "a", "1", "%", Timestamp(2**62),
    Timestamp(-(2**62)), b"\xff", Described(Symbol("com.microsoft:timespan"), 2**62), Described(Symbol("x"), "y"),
]  # fmt: skip
EVERY_OPERATOR = [
    "a = b", "a <> b", "a < b", "a >= b", "a + b = a", "a - b > 0", "a * b < b", "a / b = 1", "a % b = 1", "-a = b",
    "a IN (b, 1, 'a', TRUE, NULL)", "a LIKE '%a%'", "a IS NULL", "EXISTS(a)", "p(a) = b", "p('sys.' + a) = b",
    "NOT a = b",
]  # fmt: skip


@pytest.mark.parametrize("text", EVERY_OPERATOR)
def test_no_pair_of_types_confuses_an_operator(text: str) -> None:
    rules = [
        Rule("r", sql_filter(text)),
        Rule("s", TrueFilter(), action("SET c = a + b")),
    ]
    for left in OF_EVERY_KIND:
        for right in OF_EVERY_KIND:
            found = copies_of(rules, message({"a": left, "b": right}), new_id)
            assert all("failed: " in failure.description for failure in found.failed)


WORDS = [
    "a", "b", "user.", "sys.", "Label", "[a b]", '"x"', "@p", "1", "1.5", "'t'", "'%_'", "TRUE", "NULL", "AND", "OR",
    "NOT", "IS", "IN", "LIKE", "ESCAPE", "EXISTS", "(", ")", ",", "=", "<>", "!=", "<", ">=", "+", "-", "*", "/", "%",
    "newid()", "property(", "p(", "SET", "REMOVE", ";", ".", "'", "[", "\0", "é", "\ud800", "9" * 30, "1E400", "--",
]  # fmt: skip
SEEN = message({"a": 1, "b": "t", "p": None})


def read_and_evaluate(text: str) -> bool:
    """Whether the text is a filter or an action; either is tried on a message."""
    sound = False
    try:
        chosen = sql_filter(text, p="a%")
    except SqlError as error:
        assert 0 <= error.at <= max(len(text), 1_024) and error.text.isprintable()
    else:
        conjunctions_of(chosen)
        copies_of([Rule("r", chosen)], SEEN, new_id)
        sound = True
    try:
        acts = action(text, p="a%")
    except SqlError as error:
        assert error.text.isprintable()
    else:
        copies_of([Rule("r", TrueFilter(), acts)], SEEN, new_id)
        sound = True
    return sound


@pytest.mark.parametrize("seed", range(10))
def test_words_at_random_are_refused_or_evaluated(seed: int, measure) -> None:
    random = Random(seed)
    sound = 0
    for _ in range(measure(40_000)):
        words = random.choices(WORDS, k=random.randint(1, 12))
        sound += read_and_evaluate(random.choice(["", " "]).join(words))
    assert sound, "no text was sound: the test tries too little"


@pytest.mark.parametrize("seed", range(10))
def test_sound_texts_with_a_change_are_refused_or_evaluated(seed: int, measure) -> None:
    random = Random(seed)
    sound = [
        "color = 'it''s' AND (n + 2 * -m) / 3 >= 1.5E2 OR NOT [a ]] b] IN (1, @p, NULL)",
        "sys.Label NOT LIKE 'a!%_%' ESCAPE '!' AND EXISTS(user.\"x\"\"y\") OR p('a' + b) IS NOT NULL",
        "SET a = b % 3; REMOVE [c d] SET sys.To = newid(), SET sys.TimeToLive = '00:00:01' REMOVE sys.Label",
    ]
    for _ in range(measure(20_000)):
        text = list(random.choice(sound))
        for _ in range(random.randint(1, 3)):
            place = random.randrange(len(text))
            text[place : place + random.randint(0, 2)] = random.choice(WORDS)
        read_and_evaluate("".join(text))


@given(st.text(max_size=60))
def test_any_text_is_refused_or_evaluated(text: str) -> None:
    read_and_evaluate(text)


def test_the_largest_rule_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        sql_filter("a IN (" + ",".join(["1"] * 254) + ")")
        sql_filter("a LIKE '" + "_a" * 500 + "'")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_doubled_text_stops_growing() -> None:
    doubling = "SET a = a + a " * 32
    found = copies_of([Rule("r", TrueFilter(), action(doubling))], message({"a": "xx"}), new_id)
    assert "more than 32768 bytes" in found.failed[0].description


def test_a_refusal_is_one_that_every_door_can_show() -> None:
    with pytest.raises(ServiceError) as refused:
        sql_filter("a = \ud800\n'")
    refused.value.text.encode()
