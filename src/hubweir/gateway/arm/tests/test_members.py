"""The JSON of a request: read strictly, in any case, and nothing of it is lost in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.errors import ARGUMENT_ERROR, NOT_IMPLEMENTED, Condition, ServiceError
from hubweir.gateway.arm.members import Members


def test_members_are_found_in_any_case_and_null_is_not_there() -> None:
    members = Members.of_body(
        b'{"Name": "shop", "count": 3, "on": false, "rights": ["Send"], "none": null, "Tags": {"Team": "shop"}}'
    )
    assert (members.text("name"), members.number("Count"), members.flag("ON")) == ("shop", 3, False)
    assert members.texts("rights") == ["Send"] and members.text("none") is None
    assert members.own_texts("tags") == {"Team": "shop"} and members.own_texts("others") is None
    members.finish()


def test_an_empty_body_asks_for_nothing() -> None:
    members = Members.of_body(b"  ")
    inside = members.members("properties")
    assert inside.text("any") is None
    inside.finish()
    members.finish()


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda members: members.text("count"), "'count' must be a text"),
        (lambda members: members.number("name"), "'name' must be a whole number"),
        (lambda members: members.number("on"), "'on' must be a whole number"),
        (lambda members: members.flag("count"), "'count' must be true or false"),
        (lambda members: members.texts("name"), "'name' must be a list of texts"),
        (lambda members: members.own_texts("name"), "'name' must be an object"),
        (lambda members: members.own_texts("numbers"), "'numbers.a' must be a text"),
        (lambda members: members.members("name"), "'name' must be an object"),
        (lambda members: members.members("inside").number("deep"), "'inside.deep' must be a whole number"),
    ],
)
def test_another_type_is_refused_with_the_path(read: Callable[[Members], object], says: str) -> None:
    members = Members.of_body(b'{"name": "shop", "count": 3, "on": true, "inside": {"deep": "x"}, "numbers": {"a": 1}}')
    _refused(lambda: read(members), ARGUMENT_ERROR, says)


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"a": 1, "a": 2}', b"\xff"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    _refused(lambda: Members.of_body(body), ARGUMENT_ERROR, "The body is no JSON object")


def test_what_nobody_reads_is_refused_unless_it_asks_for_nothing() -> None:
    Members.of_body(b'{"zoneRedundant": false, "note": "", "list": [], "object": {}, "number": 0}').finish()
    for value in (b"true", b'"x"', b"[1]", b'{"a": 1}', b"7"):
        members = Members.of_body(b'{"properties": {"encryption": ' + value + b"}}").members("properties")
        _refused(members.finish, NOT_IMPLEMENTED, "'properties.encryption' is not served here: leave it out")


def _refused(step: Callable[[], object], condition: Condition, says: str) -> None:
    with pytest.raises(ServiceError) as refused:
        step()
    assert refused.value.condition is condition and says in refused.value.text
