"""LIKE against a model that tries every way, on hostile texts, and the steps it counts."""

from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hubweir.topic.like_pattern import BadPattern, parse_pattern


def fits(pattern: str, text: str, escape: str | None = None) -> bool:
    return parse_pattern(pattern, escape).matches(text, lambda count: None)


def model(pattern: str, text: str, escape: str | None) -> bool:
    """What the standard says, word by word: characters of the pattern against the text, in every way there is."""
    signs: list[tuple[str, str]] = []
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            signs.append(("itself", pattern[position + 1]))
            position += 1
        else:
            signs.append(({"%": "run", "_": "one"}.get(pattern[position], "itself"), pattern[position]))
        position += 1

    @cache
    def from_here(sign: int, place: int) -> bool:
        if sign == len(signs):
            return place == len(text)
        kind, character = signs[sign]
        if kind == "run":
            return any(from_here(sign + 1, later) for later in range(place, len(text) + 1))
        fitting = place < len(text) and (kind == "one" or text[place] == character)
        return fitting and from_here(sign + 1, place + 1)

    return from_here(0, 0)


FEW_LETTERS = st.text("ab%_!", max_size=8)


@given(FEW_LETTERS, st.text("ab%_!", max_size=12), st.sampled_from([None, "!", "%", "_", "a"]))
@example("a%a", "a", None)
@example("ab%ba", "aba", None)
@example("%_", "", None)
@example("%ab_%_ab%", "abaabab", None)
@example("%a_%b", "xxab", None)  # the last b is not the one behind a
@settings(max_examples=500)
def test_a_pattern_matches_what_the_model_matches(pattern: str, text: str, escape: str | None) -> None:
    try:
        found = fits(pattern, text, escape)
    except BadPattern:
        with pytest.raises(IndexError):
            model(pattern, text, escape)
    else:
        assert found == model(pattern, text, escape)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("or%", "order", True),
        ("or%", "Order", False),
        ("%bus%", "a bus stop", True),
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("_", "漢", True),
        ("_", "😀", True),
        ("a.c", "abc", False),  # a point is a point
        ("a[bc]", "ab", False),
        ("(a+)+$", "(a+)+$", True),
        ("%%%%", "x", True),
    ],
)
def test_wildcards_and_nothing_else_are_special(pattern: str, text: str, expected: bool) -> None:
    assert fits(pattern, text) is expected


def test_an_escape_character_makes_the_next_one_itself() -> None:
    assert fits(r"ABC\%", "ABC%", "\\")
    assert not fits(r"ABC\%", "ABCD", "\\")
    assert fits("5!_5!!", "5_5!", "!")
    with pytest.raises(BadPattern):
        parse_pattern("a!", "!")


@pytest.mark.parametrize("wildcards", [12, 120, 480])
def test_wildcards_cost_no_more_steps_than_there_are_parts(wildcards: int) -> None:
    """As a regular expression twelve of them run for minutes on sixty characters."""
    steps: list[int] = []
    assert not parse_pattern("%a" * wildcards + "b").matches("a" * 30_000, steps.append)
    assert sum(steps) <= 2 * wildcards + 2


def test_each_look_of_a_hostile_pattern_is_counted() -> None:
    steps: list[int] = []
    assert not parse_pattern("%a_b%").matches("a" * 5_000, steps.append)
    assert sum(steps) > 4_990 * 2


def test_a_long_literal_part_saves_looks() -> None:
    steps: list[int] = []
    assert parse_pattern("%a_needle%").matches("a" * 5_000 + "xneedle", steps.append)
    assert sum(steps) < 10
