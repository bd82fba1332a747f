from __future__ import annotations

import re
from pathlib import Path

from hubweir import errors
from hubweir.amqp.transport import faults
from hubweir.amqp.transport.faults import DESCRIPTION_LIMIT, ConnectionFault
from hubweir.testing.malformed_frames import malformed_corpus

ROW = re.compile(r"^\| (?P<what>[^|]+)\| (?P<scope>\w+) +\| (?P<condition>[\w:-]+) \|$", re.MULTILINE)


def test_an_error_is_bounded_and_never_without_a_text() -> None:
    error = ConnectionFault(errors.FRAMING_ERROR, "x" * 10_000).error()
    assert (error.condition, len(error.description), error.info) == (
        errors.FRAMING_ERROR.symbol,
        DESCRIPTION_LIMIT,
        None,
    )


def test_the_table_names_conditions_that_exist_and_each_has_a_case_in_the_corpus() -> None:
    rows = {(row["scope"], row["condition"]) for row in ROW.finditer(faults.__doc__ or "")} - {("scope", "condition")}
    assert len(rows) >= 12
    short = {condition.symbol.rpartition(":")[2] for condition in errors.CONDITIONS}
    assert {condition for _, condition in rows} <= short
    tried = {(case.scope, condition.rpartition(":")[2]) for case in malformed_corpus() for condition in case.conditions}
    # What needs a peer of its own to bring about stands in other tests.
    elsewhere = {("session", "frame-size-too-small"), ("link", "resource-limit-exceeded")}
    assert rows - tried <= elsewhere


def test_every_raise_of_a_fault_stands_in_a_row() -> None:
    rows = {(row["scope"], row["condition"]) for row in ROW.finditer(faults.__doc__ or "")}
    names = {name: value for name, value in vars(errors).items() if type(value) is errors.Condition}
    raised = set()
    for path in Path(faults.__file__).parent.glob("*.py"):
        for scope, name in re.findall(r"(Connection|Session|Link)Fault\([\s\w.,]*?\b([A-Z_]{5,})", path.read_text()):
            raised.add((scope.lower(), names[name].symbol.rpartition(":")[2]))
    assert len(raised) >= 12
    # A link that the peer of a client asks for is refused with this one; no fault ends a session so.
    assert raised - rows <= {("session", "not-allowed")}
