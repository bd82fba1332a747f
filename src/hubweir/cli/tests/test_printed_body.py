"""printed_body.py: what a body looks like in a line and in a JSON object, whatever kind it is of."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, SequenceBody, ValueBody
from hubweir.cli.printed_body import body_line, body_members


@pytest.mark.parametrize(
    ("body", "whole", "members", "line"),
    [
        (b"text", DataBody((b"text",)), {"body": "text"}, b"text"),
        (b"", DataBody((b"",)), {"body": ""}, b""),
        (b"\xff", DataBody((b"\xff",)), {"body": None, "body_base64": "/w=="}, b"\xff"),
        (None, None, {"body": None}, ""),
        (None, ValueBody(None), {"body": None}, ""),
        (None, ValueBody("text"), {"body": None, "body_value": "text"}, "text"),
        (None, ValueBody(0), {"body": None, "body_value": 0}, "0"),
        (None, ValueBody({"a": 1}), {"body": None, "body_value": {"a": 1}}, '{"a": 1}'),
        (None, SequenceBody(([1], ["b"])), {"body": None, "body_value": [[1], ["b"]]}, '[[1], ["b"]]'),
    ],
)
def test_each_kind_of_body(body: bytes | None, whole: object, members: dict[str, object], line: bytes | str) -> None:
    message = Message(body=whole)  # type: ignore[arg-type]
    assert body_members(body, message) == members
    assert body_line(body, message) == line
