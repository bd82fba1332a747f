"""Members of an object: each type with its range, what is noted when it is something else, and where."""

import json
from collections.abc import Callable
from enum import Enum

import pytest

from hubweir.config.json_fields import Fields, fields_of, nearest
from hubweir.config.json_file import ConfigFile
from hubweir.config.problems import Kind, Problem, Problems, Severity
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.names import check_group_name


class Colour(Enum):
    RED = "Red"
    BLUE = "Blue"


class Opened:
    """The members of one object, and the problems noted so far."""

    def __init__(self, value: object, *, strict: bool = False) -> None:
        self.problems = Problems()
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.file = ConfigFile(data, file="f.json", problems=self.problems, strict=strict)
        assert self.file.root is not None
        fields = fields_of(self.file, self.file.root, ("UserConfig",))
        assert fields is not None
        self.fields = fields

    @property
    def noted(self) -> list[Problem]:
        return [*self.problems._errors, *self.problems._warnings]

    def kinds(self) -> list[Kind]:
        return [problem.kind for problem in self.noted]


Read = Callable[[Fields], object]
READS: dict[str, Read] = {
    "text": lambda fields: fields.bounded_text("a", least=2, most=4, allowed="2 to 4"),
    "checked": lambda fields: fields.text("a", check=check_group_name),
    "integer": lambda fields: fields.integer("a", least=-1, most=32),
    "boolean": lambda fields: fields.boolean("a"),
    "choice": lambda fields: fields.choice("a", Colour),
    "duration": lambda fields: fields.duration("a", least_ms=1_000, most_ms=60_000),
    "elements": lambda fields: [node.value for node, _ in fields.elements("a", least=1, most=2)],
    "objects": lambda fields: len(list(fields.objects("a"))),
    "texts": lambda fields: [text for text, _, _ in fields.texts("a", allowed="texts")],
    "object": lambda fields: None if (inner := fields.object("a")) is None else inner.steps,
}


@pytest.mark.parametrize(
    ("read", "value", "result"),
    [
        ("text", "ab", "ab"), ("text", "abcd", "abcd"),
        ("checked", "$dEFAULT", "$Default"), ("checked", "g", "g"),
        ("integer", 2, 2), ("integer", "2", 2), ("integer", "-1", -1), ("integer", -1, -1), ("integer", 32, 32),
        ("integer", 2.0, 2), ("integer", "0000000000000000002", None), ("integer", "000000000000000002", 2),
        ("boolean", True, True), ("boolean", False, False), ("boolean", "TRUE", True), ("boolean", "false", False),
        ("choice", "Red", Colour.RED), ("choice", "bLUE", Colour.BLUE),
        ("duration", "PT1S", WrittenDuration(1_000, "PT1S")),
        ("duration", "00:01:00", WrittenDuration(60_000, "00:01:00")),
        ("elements", [1], [1]), ("elements", [1, "b"], [1, "b"]),
        ("objects", [{}, {}], 2), ("objects", [], 0),
        ("texts", ["a", ""], ["a", ""]),
        ("object", {}, ("UserConfig", "a")),
    ],
)  # fmt: skip
def test_a_legal_value_is_read_and_nothing_noted(read: str, value: object, result: object) -> None:
    opened = Opened({"a": value})
    assert READS[read](opened.fields) == result
    assert bool(opened.noted) == (result is None)


@pytest.mark.parametrize("read", sorted(READS))
@pytest.mark.parametrize("members", [{}, {"a": None}])
def test_a_member_that_is_not_there_or_null_is_no_problem(read: str, members: dict[str, None]) -> None:
    opened = Opened(members)
    assert READS[read](opened.fields) in (None, [], 0)
    assert opened.noted == []


@pytest.mark.parametrize(
    ("read", "value", "kind", "found", "allowed"),
    [
        ("text", 7, Kind.WRONG_TYPE, "7", "2 to 4"),
        ("text", True, Kind.WRONG_TYPE, "true", "2 to 4"),
        ("text", "a", Kind.BAD_VALUE, "1 characters", "2 to 4"),
        ("text", "abcde", Kind.BAD_VALUE, "5 characters", "2 to 4"),
        ("checked", "a/b", Kind.BAD_VALUE, '"a/b"', "a text"),
        ("integer", "x", Kind.WRONG_TYPE, '"x"', "an integer from -1 to 32"),
        ("integer", "+2", Kind.WRONG_TYPE, '"+2"', "an integer from -1 to 32"),
        ("integer", " 2", Kind.WRONG_TYPE, '" 2"', "an integer from -1 to 32"),
        ("integer", "2_0", Kind.WRONG_TYPE, '"2_0"', "an integer from -1 to 32"),
        ("integer", "٢", Kind.WRONG_TYPE, '"٢"', "an integer from -1 to 32"),
        ("integer", "--1", Kind.WRONG_TYPE, '"--1"', "an integer from -1 to 32"),
        ("integer", "", Kind.WRONG_TYPE, '""', "an integer from -1 to 32"),
        ("integer", True, Kind.WRONG_TYPE, "true", "an integer from -1 to 32"),
        ("integer", 2.5, Kind.WRONG_TYPE, "2.5", "an integer from -1 to 32"),
        ("integer", -2, Kind.BAD_VALUE, "-2", "an integer from -1 to 32"),
        ("integer", 33, Kind.BAD_VALUE, "33", "an integer from -1 to 32"),
        ("integer", "33", Kind.BAD_VALUE, '"33"', "an integer from -1 to 32"),
        ("boolean", "yes", Kind.WRONG_TYPE, '"yes"', "true or false"),
        ("boolean", 1, Kind.WRONG_TYPE, "1", "true or false"),
        ("choice", "Green", Kind.BAD_VALUE, '"Green"', '"Red", "Blue"'),
        ("choice", 1, Kind.WRONG_TYPE, "1", '"Red", "Blue"'),
        ("duration", "PT", Kind.BAD_VALUE, '"PT"', "a duration from PT1S to PT1M"),
        ("duration", "PT61S", Kind.BAD_VALUE, '"PT61S"', "a duration from PT1S to PT1M"),
        ("duration", "PT0.9S", Kind.BAD_VALUE, '"PT0.9S"', "a duration from PT1S to PT1M"),
        ("duration", 60, Kind.WRONG_TYPE, "60", "a duration from PT1S to PT1M"),
        ("elements", [], Kind.WRONG_COUNT, "an array of 0", "an array of 1 to 2"),
        ("elements", [1, 2, 3], Kind.WRONG_COUNT, "an array of 3", "an array of 1 to 2"),
        ("elements", {}, Kind.WRONG_TYPE, "an object", "an array of 1 to 2"),
        ("objects", "x", Kind.WRONG_TYPE, '"x"', "an array"),
        ("objects", [1], Kind.WRONG_TYPE, "1", "an object"),
        ("objects", [None], Kind.WRONG_TYPE, "null", "an object"),
        ("texts", [1], Kind.WRONG_TYPE, "1", "texts"),
        ("object", [], Kind.WRONG_TYPE, "an array of 0", "an object"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_noted_with_what_was_found_and_is_allowed(
    read: str, value: object, kind: Kind, found: str, allowed: str
) -> None:
    opened = Opened({"a": value})
    READS[read](opened.fields)
    [problem] = opened.noted
    assert (problem.severity, problem.kind, problem.found, problem.allowed) == (Severity.ERROR, kind, found, allowed)
    assert problem.location.path.startswith("$.UserConfig.a")
    assert (problem.location.file, problem.location.line) == ("f.json", 1)
    assert problem.location.column == (8 if problem.location.path.endswith("]") else 7)


def test_a_required_member_is_missed_at_its_object_and_a_null_at_the_null() -> None:
    opened = Opened(b'{"b": 1,\n "a": null}')
    assert opened.fields.text("a", required=True, allowed="x") is None
    assert opened.fields.integer("c", required=True, least=4, most=4) is None
    null, missing = opened.noted
    assert str(null) == "f.json:2:7: $.UserConfig.a: error: the member a is needed; found null; allowed: x"
    assert str(missing) == (
        "f.json:1:1: $.UserConfig.c: error: the member c is needed; found nothing; allowed: the integer 4"
    )


def test_a_secret_is_never_quoted() -> None:
    for value in ("hunter2" * 40, 4_711, True, ["hunter2"]):
        opened = Opened({"a": value})
        assert opened.fields.secret_text("a", least=1, most=8, allowed="a key") is None
        assert "hunter2" not in str(opened.noted[0]) and "4711" not in str(opened.noted[0])
    opened = Opened({"a": "hunter2/"})
    assert opened.fields.secret_text("a", least=9, most=9, allowed="a key") is None
    assert opened.noted[0].found == "8 characters"
    assert Opened({"a": "hunter2/"}).fields.secret_text("a", least=1, most=8, allowed="a key") == "hunter2/"


def test_a_member_nobody_asked_for_is_warned_of_with_the_name_it_looks_like() -> None:
    opened = Opened(b'{"Name": "x", "partitioncount": 3,\n"Colour": 1, "Ignored": 2}')
    opened.fields.text("Name")
    opened.fields.integer("PartitionCount", least=1, most=2)
    opened.fields.ignore("Ignored")
    opened.fields.finish()
    near, far = opened.noted
    assert (near.severity, near.kind) == (Severity.WARNING, Kind.UNKNOWN_MEMBER)
    assert near.what == 'nothing reads this member; did you mean "PartitionCount"?'
    assert far.what == "nothing reads this member"
    assert far.allowed == "Ignored, Name, PartitionCount"
    assert [str(problem.location) for problem in (near, far)] == [
        "f.json:1:15: $.UserConfig.partitioncount",
        "f.json:2:1: $.UserConfig.Colour",
    ]


def test_strict_makes_an_unknown_member_an_error() -> None:
    opened = Opened({"a": 1}, strict=True)
    opened.fields.finish()
    assert [problem.severity for problem in opened.noted] == [Severity.ERROR]


@pytest.mark.parametrize(
    ("name", "near"), [("Nmae", "Name"), ("name", "Name"), ("Entites", "Entities"), ("Partitions", None), ("", None)]
)
def test_the_nearest_name_is_near(name: str, near: str | None) -> None:
    assert nearest(name, dict.fromkeys(("Name", "Entities", "Type"))) == near
