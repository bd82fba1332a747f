"""A route takes the paths of its form, and tells their parts."""

import pytest

from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.route import KEYWORDS, Match, Route
from hubweir.namespace.rights import Rights


async def answer(gateway: Gateway, request: Request, match: Match) -> Response:
    return Response(200)


def route(path: str, resource: str = "") -> Route:
    return Route("GET", tuple(path.split("/")), tuple(resource.split("/")) if resource else (), Rights.MANAGE, answer)


def test_the_hub_takes_every_segment_that_is_over_and_keeps_how_it_was_written() -> None:
    group = route("{entity}/consumergroups/{group}", "{entity}/consumergroups/{group}")
    match = group.match(("Team", "Hub", "ConsumerGroups", "Readers"))
    assert match == Match("Team/Hub", {"group": "Readers"}, ("team", "hub", "consumergroups", "readers"))


def test_a_resource_that_is_shorter_than_the_path_has_its_parts_only() -> None:
    match = route("{entity}/revokedpublishers/{publisher}", "{entity}").match(("hub", "revokedpublishers", "P"))
    assert match == Match("hub", {"publisher": "P"}, ("hub",))


def test_a_path_without_a_hub_asks_for_the_namespace() -> None:
    assert route("$resources/eventhubs").match(("$Resources", "EventHubs")) == Match("", {}, ())


@pytest.mark.parametrize("piece", [*sorted(KEYWORDS), "Partitions", "$cbs"])
def test_a_hub_has_no_keyword_and_no_dollar_in_its_name(piece: str) -> None:
    hub = route("{entity}")
    assert hub.match(("team", "hub")) is not None
    assert hub.match(("team", piece)) is None


def test_what_messages_are_received_from_may_be_any_part_of_an_entity() -> None:
    head = route("{queue}/messages/head", "{queue}")
    match = head.match(("News", "Subscriptions", "S", "$DeadLetterQueue", "Messages", "Head"))
    path = ("news", "subscriptions", "s", "$deadletterqueue")
    assert match == Match("News/Subscriptions/S/$DeadLetterQueue", {}, path)
    assert head.match(("messages", "head")) is None


@pytest.mark.parametrize("segments", [("consumergroups",), ("hub", "consumergroups", "g", "x"), ("hub", "partitions")])
def test_a_path_of_another_form_is_not_taken(segments: tuple[str, ...]) -> None:
    assert route("{entity}/consumergroups").match(segments) is None
