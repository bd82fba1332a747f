"""Which defects are found in a source, and that planting one changes what it says and nothing else."""

import textwrap

import pytest

from tests.mutants.defects import Defect, defects_of


def found(body: str) -> list[Defect]:
    return defects_of(f"def function():\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n".encode())


def changes(body: str) -> set[tuple[str, str]]:
    return {(" ".join(defect.old.split()), " ".join(defect.new.split())) for defect in found(body)}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("file.sync()", {("file.sync()", "pass")}),
        ("await link.close()", {("await link.close()", "pass")}),
        ("self.synced = upto", {("self.synced = upto", "pass")}),
        ("raise DiskFull('no space')", {("raise DiskFull('no space')", "pass")}),
        ("return a < b", {("<", "<=")}),
        ("return a >= b", {(">=", ">")}),
        ("return a is None", {("is", "is not")}),
        ("return a not in b", {("not in", "in")}),
        ("return a - b", {("-", "+")}),
        ("return a and b", {("a and b", "(a)"), ("a and b", "(b)")}),
        ("return max(a, b)", {("max", "min")}),
        ("return 7", {("7", "8")}),
        ("send(last=True)", {("send(last=True)", "pass"), ("True", "False")}),
        ("if ready:\n    return", {("ready", "(not (ready))"), ("return", "pass")}),
        ("with file:\n    file.sync()", {("file.sync()", "pass")}),
    ],
)
def test_each_kind_of_mistake_is_found(body: str, expected: set[tuple[str, str]]) -> None:
    assert changes(body) == expected


def test_two_effects_in_a_row_change_places() -> None:
    turned = [defect for defect in found("files.rename(a, b)\nfiles.sync_folder(c)") if "order" in defect.kind]
    assert [" ".join(defect.new.split()) for defect in turned] == ["files.sync_folder(c) files.rename(a, b)"]


@pytest.mark.parametrize(
    "body",
    [
        "logger.info('%s of %s', done - 1, 7)",
        "assert position < end",
        "'''A text for people.'''",
        "found: list[int]",
        "return f'{count + 1} of {7}'",
        "super().__init__()",
    ],
)
def test_what_decides_nothing_is_left_alone(body: str) -> None:
    assert found(body) == []


def test_what_a_refusal_says_is_left_alone_and_the_refusal_is_not() -> None:
    assert changes("raise TooLong(f'{size} bytes', limit + 1)") == {
        ("raise TooLong(f'{size} bytes', limit + 1)", "pass")
    }


def test_a_planted_defect_changes_its_stretch_and_nothing_else() -> None:
    source = "def größe(a, b):\n    ü = 'ä'\n    return (a) <= (b)\n".encode()
    (bound,) = [defect for defect in defects_of(source) if "bound" in defect.kind]
    assert bound.planted(source).decode() == "def größe(a, b):\n    ü = 'ä'\n    return (a) < (b)\n"
    assert bound.line == 3


def test_a_representation_and_an_interface_have_no_defects() -> None:
    source = (
        b"class A:\n    def __repr__(self):\n        return str(1 + 2)\n    def size(self):\n        '''Bytes.'''\n"
    )
    assert defects_of(source) == []


@pytest.mark.parametrize(
    ("body", "is_swapped"),
    [
        ("self.size = 0\nself.synced = 0", False),
        ("self.size = 0\nself.mark = within(mark)", False),
        ("self.size += 1\nself.synced += size", False),
        ("self.size += 1\nself.synced = self.size", True),
        ("self.size = 0\nself.size = size", True),
        ("self.size = 0\nself.mark = self.within(mark)", True),
        ("self.first = take()\nself.second = take()", True),
        ("self.size = 0\nfile.sync()", True),
        ("sizes[name] = 0\nsizes[other] = 1", True),
    ],
)
def test_two_statements_change_places_unless_they_know_nothing_of_one_another(body: str, is_swapped: bool) -> None:
    assert any(defect.kind == "an order is turned round" for defect in found(body)) is is_swapped
