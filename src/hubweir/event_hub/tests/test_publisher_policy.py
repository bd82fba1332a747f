"""Who may send as a publisher: everybody whose name fits, but for the revoked, however they spell it."""

import pytest

from hubweir.errors import INVALID_FIELD, UNAUTHORIZED, ServiceError
from hubweir.event_hub.publisher_policy import check_publisher, is_revoked
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.names import PUBLISHER_NAME_LIMIT

HUB = EventHubDescription("hub", 4, revoked_publishers=("Alpha", "b e\u0301ta"))


@pytest.mark.parametrize("name", ["Alpha", "alpha", "ALPHA", "b e\u0301ta", "B E\u0301TA"])
def test_a_revoked_publisher_may_not_send_in_whatever_case(name: str) -> None:
    assert is_revoked(HUB, name)
    with pytest.raises(ServiceError, match="of event hub 'hub' was revoked") as refused:
        check_publisher(HUB, name)
    assert refused.value.condition is UNAUTHORIZED


@pytest.mark.parametrize(
    "name", ["alph", "alphab", "alpha ", "\u0391lpha", "al\u03c1ha", "b \u00e9ta", "b e\u0301t\u00e4", "x"]
)
def test_who_only_looks_alike_is_another_publisher(name: str) -> None:
    assert not is_revoked(HUB, name)
    check_publisher(HUB, name)


def test_without_revocations_everybody_may_send() -> None:
    check_publisher(EventHubDescription("hub", 1), "Alpha")


def test_a_name_may_be_so_long_and_not_one_character_longer() -> None:
    check_publisher(HUB, "x" * PUBLISHER_NAME_LIMIT)
    with pytest.raises(ServiceError, match="has 129 characters; 128 are allowed") as refused:
        check_publisher(HUB, "x" * (PUBLISHER_NAME_LIMIT + 1))
    assert refused.value.condition is INVALID_FIELD


def test_a_name_cannot_forge_a_line_of_the_refusal() -> None:
    hub = EventHubDescription("hub", 1, revoked_publishers=("a\r\nSystemTracker:x",))
    with pytest.raises(ServiceError) as refused:
        check_publisher(hub, "a\r\nSystemTracker:x")
    assert "\n" not in refused.value.text and "\r" not in refused.value.text
