"""JSON with comments and trailing commas: what it is worth, where each value stands, where it stops being JSON."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.config.file_text import LinePositions
from hubweir.config.jsonc import (
    DEPTH_LIMIT,
    NUMBER_LIMIT,
    VALUES_LIMIT,
    JsonError,
    JsonNode,
    parse_jsonc,
)
from hubweir.config.problems import path_text


def plain(node: JsonNode) -> object:
    """Return the value without places."""
    if isinstance(node.value, dict):
        return {name: plain(member.node) for name, member in node.value.items()}
    if isinstance(node.value, list):
        return [plain(element) for element in node.value]
    return node.value


def values(text: str) -> object:
    return plain(parse_jsonc(text).root)


def broken(text: str) -> tuple[str, int, int, str]:
    """Return what is wrong, its line and column, and the path."""
    with pytest.raises(JsonError) as caught:
        parse_jsonc(text)
    return caught.value.what, *LinePositions(text).line_and_column(caught.value.at), path_text(caught.value.steps)


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", '""', "0", "-0", "12", "-3.25", "1e3", "1E-2", "true", "false", "null", ' [ 1 , "a" ] ',
        '{"a": {"b": [null, {"c": ""}]}}', '"\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00e9 \\ud83d\\ude00"', '"é😀"',
    ],
)  # fmt: skip
def test_json_reads_as_the_standard_library_reads_it(text: str) -> None:
    assert values(text) == json.loads(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(json_values, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_whatever_the_standard_library_writes_comes_back(
    value: object, ascii_only: bool, indent: int | str | None
) -> None:
    assert values(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == value


@pytest.mark.parametrize(
    "text",
    [
        "// one\n[1, 2]",
        "[1, // one\n 2]",
        "[1, 2] // end",
        "/* a\n b */[1,/**/2]",
        "[1,2,]",
        "[1,2 , /* c */ ]",
        "[1/**/,2//\r]",
    ],
)
def test_comments_and_a_trailing_comma_change_nothing(text: str) -> None:
    assert values(text) == [1, 2]
    assert values(text.replace("[1", '{"a": 1').replace("2", '"b": 2').replace("]", "}")) == {"a": 1, "b": 2}


def test_a_text_that_looks_like_a_comment_is_a_text() -> None:
    assert values('["// no", "/* no */"]') == ["// no", "/* no */"]


def test_every_value_and_name_knows_its_place() -> None:
    text = '{\n  "a": [1,\r\n\t"é", {"b" : true}]\r}'
    positions = LinePositions(text)
    root = parse_jsonc(text).root
    assert isinstance(root.value, dict)
    member = root.value["a"]
    assert isinstance(member.node.value, list)
    places = [root.at, member.at, member.node.at, *(node.at for node in member.node.value)]
    inner = member.node.value[2].value
    assert isinstance(inner, dict)
    places += [inner["b"].at, inner["b"].node.at]
    assert [positions.line_and_column(at) for at in places] == [
        (1, 1), (2, 3), (2, 8), (2, 9), (3, 2), (3, 7), (3, 8), (3, 14),
    ]  # fmt: skip
    assert positions.line_and_column(len(text) - 1) == (4, 1)


@pytest.mark.parametrize(
    ("text", "what", "line", "column", "path"),
    [
        ("", "the file is empty", 1, 1, "$"),
        (" // nothing\n", "the file is empty", 2, 1, "$"),
        ("{} {}", "something follows the end of the document", 1, 4, "$"),
        ("[1", "values are not separated", 1, 3, "$"),
        ("[1 2]", "values are not separated", 1, 4, "$"),
        ("[,]", "a value is missing", 1, 2, "$[0]"),
        ("[1,,2]", "a value is missing", 1, 4, "$[1]"),
        ("[", "a value is missing", 1, 2, "$[0]"),
        ("[}", "a value is missing", 1, 2, "$[0]"),
        ('{"a": }', "a value is missing", 1, 7, "$.a"),
        ('{"a" 1}', "a member's name has no value", 1, 6, "$.a"),
        ('{"a": 1 "b": 2}', "values are not separated", 1, 9, "$"),
        ("{a: 1}", "a member's name is missing", 1, 2, "$"),
        ("{,}", "a member's name is missing", 1, 2, "$"),
        ('{"a": [0, {"b": tru}]}', "this is no value; texts stand in double quotes", 1, 17, "$.a[1].b"),
        ("['a']", "this is no value; texts stand in double quotes", 1, 2, "$[0]"),
        ('"abc', "a text is not closed on its line", 1, 1, "$"),
        ('["abc\n"]', "a text is not closed on its line", 1, 2, "$[0]"),
        ('"a\tb"', "a text holds a control character", 1, 3, "$"),
        ('"a\\x"', "an escape is not one of JSON", 1, 3, "$"),
        ('"\\u12g4"', "an escape is not one of JSON", 1, 2, "$"),
        ('"\\', "an escape is not one of JSON", 1, 2, "$"),
        ('"\\ud83d"', "half of a surrogate pair stands alone", 1, 2, "$"),
        ('"\\ude00"', "half of a surrogate pair stands alone", 1, 2, "$"),
        ('"\\ud83d\\u0041"', "half of a surrogate pair stands alone", 1, 2, "$"),
        ("[1, /* x", "a comment is not closed", 1, 5, "$"),
        ("/", "a value is missing", 1, 1, "$"),
        ("[NaN]", "NaN and Infinity are not JSON", 1, 2, "$[0]"),
        ("[-Infinity]", "NaN and Infinity are not JSON", 1, 2, "$[0]"),
        ("[inf]", "NaN and Infinity are not JSON", 1, 2, "$[0]"),
        ("1e999", "a number is too large", 1, 1, "$"),
        ("01", "this is no value", 1, 1, "$"),
        ("+1", "this is no value", 1, 1, "$"),
        (".5", "this is no value", 1, 1, "$"),
        ("1.", "this is no value", 1, 1, "$"),
        ("0x10", "this is no value", 1, 1, "$"),
        ("1_000", "this is no value", 1, 1, "$"),
        ("١", "this is no value", 1, 1, "$"),
        ("9" * (NUMBER_LIMIT + 1), "a number is too long", 1, 1, "$"),
        ("9" * 100_000, "a number is too long", 1, 1, "$"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_where_it_stops_being_json(
    text: str, what: str, line: int, column: int, path: str
) -> None:
    assert broken(text) == (what, line, column, path)


def test_the_longest_number_is_read() -> None:
    assert values("9" * NUMBER_LIMIT) == 10**NUMBER_LIMIT - 1


def test_a_member_named_twice_is_told_with_both_places_and_the_first_is_kept() -> None:
    document = parse_jsonc('{"a": 1, "b": {"c": 2, "c": 3, "c": 4}, "a": 5, "A": 6}')
    assert plain(document.root) == {"a": 1, "b": {"c": 2}, "A": 6}
    told = [(path_text(twice.steps), twice.first_at, twice.at) for twice in document.duplicates]
    assert told == [("$.b.c", 15, 23), ("$.b.c", 15, 31), ("$.a", 1, 40)]


def test_depth_is_bounded_at_the_limit_and_not_before() -> None:
    assert parse_jsonc("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT)
    what, line, column, _ = broken("[" * (DEPTH_LIMIT + 1))
    assert (what, line, column) == ("objects and arrays are nested too deeply", 1, DEPTH_LIMIT + 1)
    assert broken('{"a":' * 100_000)[0] == "objects and arrays are nested too deeply"


def test_the_number_of_values_is_bounded() -> None:
    assert parse_jsonc("[" + "0," * (VALUES_LIMIT - 1) + "]")
    assert broken("[" + "0," * VALUES_LIMIT + "]")[0] == "the file holds too many values"


def test_random_texts_of_json_characters_are_read_or_refused() -> None:
    generator = random.Random(4)
    for _ in range(5_000):
        text = "".join(generator.choices('{}[],:"\\/*019.eE-+ntu \n\rdaf8', k=generator.randrange(1, 30)))
        try:
            parse_jsonc(text)
        except JsonError as error:
            assert 0 <= error.at <= len(text)
