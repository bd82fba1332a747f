"""service_log.py: a table of kinds; who says a line gives its fields, all of them and no others."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hubweir
from hubweir import service_log
from hubweir.service_log import ATTACH_REFUSED, CONNECTION_OPENED, KINDS, TEXT_LIMIT, LineKind, plain

SOURCE = Path(hubweir.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "logs.md"
logger = logging.getLogger("hubweir.a_test")
BY_CONSTANT = {name: kind for name, kind in vars(service_log).items() if isinstance(kind, LineKind)}


def said(caplog: pytest.LogCaptureFixture, kind: LineKind, **fields: service_log.Value) -> str:
    with caplog.at_level(logging.INFO):
        kind.say(logger, **fields)
    return caplog.messages[-1]


def test_a_line_is_its_wording_with_the_fields_in_it(caplog: pytest.LogCaptureFixture) -> None:
    line = said(caplog, CONNECTION_OPENED, connection=3, peer="p", namespace="ns", container="c1", client="azsdk")
    assert line == "connection 3 of p opened: namespace ns, container 'c1', client 'azsdk'"


@pytest.mark.parametrize("missing", [None, ""])
def test_a_part_in_brackets_is_left_out_when_its_field_is_missing(
    caplog: pytest.LogCaptureFixture, missing: str | None
) -> None:
    line = said(caplog, CONNECTION_OPENED, connection=3, peer="p", namespace="ns", container=missing, client="azsdk")
    assert line == "connection 3 of p opened: namespace ns, client 'azsdk'"


def test_braces_and_brackets_of_a_peer_are_its_own(caplog: pytest.LogCaptureFixture) -> None:
    line = said(caplog, ATTACH_REFUSED, condition="c", peer="p", entity="", text="no {peer} [, {text}]")
    assert line == "attach refused: c, peer p: no {peer} [, {text}]"


def test_what_a_peer_chose_makes_no_line_of_its_own_and_a_long_text_keeps_its_end() -> None:
    assert plain("a\r\nb\x1b[31m") == "a??b?[31m"
    cut = plain("x" * 5_000 + "TrackingId:1")
    assert cut.endswith("xTrackingId:1") and len(cut) == TEXT_LIMIT + len(" … ")
    assert plain("x" * TEXT_LIMIT) == "x" * TEXT_LIMIT


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=a+b/c==;EntityPath=e",
         "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=(secret);EntityPath=e"),
        ("SharedAccessSignature sr=h&sig=ab%2Bc%3D&se=1&skn=n", "SharedAccessSignature sr=h&sig=(secret)&se=1&skn=n"),
        ("sharedaccesskey%3Dabc%3D%3D&x", "sharedaccesskey%3D(secret)&x"),
        ("AccountKey=xyz==;EndpointSuffix=s", "AccountKey=(secret);EndpointSuffix=s"),
        ("queue 'eyJhbGciOi.eyJzdWIi.sig-nature_1'", "queue '(secret)'"),
        ("'SharedAccessKey=k'", "'SharedAccessKey=(secret)'"),
        ("SharedAccessKey=" + "k" * 5_000, "SharedAccessKey=(secret)"),
        ("design=7, signal=8, sr=h", "design=7, signal=8, sr=h"),
    ],
)  # fmt: skip
def test_what_looks_like_a_key_a_signature_or_a_token_is_not_printed(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_nothing_is_put_together_for_a_level_that_nobody_prints(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    CONNECTION_OPENED.say(logger, connection=1)  # else it would miss its other fields
    assert not caplog.records


def test_every_kind_is_in_the_table_once_and_counts_by_a_field_of_its_own() -> None:
    assert set(KINDS) == set(BY_CONSTANT.values()) and len(KINDS) == len({kind.name for kind in KINDS})
    for kind in KINDS:
        assert not kind.by or kind.by in kind.fields
        assert kind.meaning.endswith(".") and kind.per_minute >= 0


def test_whoever_says_a_line_gives_exactly_its_fields() -> None:
    calls = [call for path in sorted(SOURCE.rglob("*.py")) if "tests" not in path.parts for call in calls_in(path)]
    wrong = [call for call in calls if call[1] ^ set(BY_CONSTANT[call[0]].fields)]
    assert not wrong
    # Refusals, alarms and throttling say their lines by a variable; their own tests see what they give.
    by_variable = {"ALARM", "NO_SUCH_ENTITY"}
    by_variable |= {name for name in BY_CONSTANT if name.endswith("_REFUSED") or "THROTTLED" in name}
    assert {name for name, _ in calls} | by_variable == set(BY_CONSTANT)


def test_a_call_with_a_field_too_few_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("THROTTLED.say(logger, namespace='ns')")
    assert calls_in(path) == [("THROTTLED", {"namespace"})]
    assert {"namespace"} ^ set(BY_CONSTANT["THROTTLED"].fields) == {"text"}


def calls_in(path: Path) -> list[tuple[str, set[str]]]:
    """The kind and the fields of each call of `say` on a constant of the table."""
    tree = ast.parse(path.read_text())
    return [
        (node.func.value.id, {each.arg or "" for each in node.keywords} - {"level"})
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "say"
        and isinstance(node.func.value, ast.Name) and node.func.value.id in BY_CONSTANT
    ]  # fmt: skip


def test_the_page_has_a_row_for_every_kind() -> None:
    table = PAGE.read_text().split("<!-- kinds: from hubweir/service_log.py -->\n")[1].split("<!-- end of kinds -->")[0]
    assert table == "\n".join(rows()) + "\n"


def samples() -> list[str]:
    """The lines of a log that the pages show."""
    pages = (PAGE, PAGE.with_name("alarms.md"))
    blocks = [block for page in pages for block in re.findall(r"^```text\n(.*?)^```", page.read_text(), re.M | re.S)]
    return [line for block in blocks for line in block.splitlines()]


def wording(kind: LineKind) -> str:
    """What a line of this kind matches."""

    def with_fields(text: str) -> str:
        return "".join(".+" if "{" in part else re.escape(part) for part in re.split(r"(\{[^}]*\})", text))

    parts = re.split(r"\[([^\]]*)\]", kind.text)  # every second one may be left out
    return "".join(f"(?:{with_fields(part)})?" if at % 2 else with_fields(part) for at, part in enumerate(parts))


def problem(line: str) -> str | None:
    """What is not as the service would write it: the level, the kind, the wording."""
    found = re.fullmatch(r"2026-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) ([a-z-]+): (.*)", line)
    kind = next((kind for kind in KINDS if found is not None and kind.name == found[2]), None)
    if found is None or kind is None:
        return "no line of the log"
    if found[1] != logging.getLevelName(kind.level):
        return f"{kind.name} has another level"
    return None if re.fullmatch(wording(kind), found[3]) else f"{kind.name} has another wording"


def test_the_lines_that_pages_show_are_as_the_service_writes_them() -> None:
    assert len(samples()) == 6
    assert [(line, why) for line in samples() if (why := problem(line))] == []


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("INFO ready", "WARNING ready", "level"),
        ("INFO ready: ", "INFO is-ready: ", "no line"),
        (" out", " sent", "wording"),
    ],
)
def test_control_arm_a_line_that_no_service_writes_is_found(right: str, wrong: str, why: str) -> None:
    [line] = [line for line in samples() if right in line]
    assert why in str(problem(line.replace(right, wrong)))


def rows() -> Iterator[str]:
    yield "| kind | level | a minute | what happened | fields |"
    yield "|---|---|---|---|---|"
    for kind in KINDS:
        most = f"{kind.per_minute}" + (f" for each {kind.by}" if kind.by else "") if kind.per_minute else "see there"
        level = logging.getLevelName(kind.level).lower()
        fields = ", ".join(f"`{name}`" for name in kind.fields)
        yield f"| `{kind.name}` | {level} | {most} | {kind.meaning} | {fields} |"
