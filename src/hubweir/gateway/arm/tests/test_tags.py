"""tags.py: what a namespace may have as location and tags."""

from __future__ import annotations

import json

import pytest

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.arm.members import Members
from hubweir.gateway.arm.tags import check_location, wanted_location, wanted_tags


def said(**members: object) -> Members:
    return Members.of_body(json.dumps(members).encode())


def test_tags_come_in_their_order_with_their_case() -> None:
    assert wanted_tags(said(tags={"Team": "shop", "a": ""})) == (("Team", "shop"), ("a", ""))
    assert wanted_tags(said(tags={})) == () and wanted_tags(said()) is None


def test_as_many_and_as_long_as_may_be_are_taken() -> None:
    most = {f"{number:02}".ljust(512, "n"): "v" * 256 for number in range(50)}
    assert wanted_tags(said(tags=most)) == tuple(most.items())


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        ({str(number): "" for number in range(51)}, "51 tags; at most 50"),
        ({"": "x"}, "1 to 512 characters"),
        ({"n" * 513: ""}, "1 to 512 characters"),
        ({"a/b": ""}, "none of < > % & "),
        ({"a\\b": ""}, "none of < > % & "),
        ({"a\nb": ""}, "none of < > % & "),
        ({"n": "v" * 257}, "'n' has 257 characters; at most 256"),
        ({"team": "", "Team": ""}, "Two tags have one name"),
    ],
)
def test_what_no_tag_may_be_is_refused(tags: dict[str, str], says: str) -> None:
    with pytest.raises(ServiceError, match=says) as refused:
        wanted_tags(said(tags=tags))
    assert refused.value.condition is ARGUMENT_ERROR


def test_a_location_has_a_limit_and_never_changes() -> None:
    assert wanted_location(said(location="x" * 64)) == "x" * 64
    assert wanted_location(said(location="")) is wanted_location(said()) is None
    with pytest.raises(ServiceError, match="65 characters; at most 64"):
        wanted_location(said(location="x" * 65))
    for known, wanted in (("", "westeurope"), ("westeurope", None), ("westeurope", "West Europe")):
        check_location("shop", known, wanted)
    with pytest.raises(ServiceError, match="'shop' is in the location 'westeurope', and stays there"):
        check_location("shop", "westeurope", "northeurope")
