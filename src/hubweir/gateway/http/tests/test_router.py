"""One table says what there is: every line is reached by its path, and by no other."""

import pytest

from hubweir.gateway.http.problem import HttpRefusal
from hubweir.gateway.http.route import Route
from hubweir.gateway.http.router import ROUTES, find_route


def path_of(route: Route) -> tuple[str, ...]:
    """A path for this route; its hub has a slash in its name, and its queue is the dead letters of one."""
    parts = {"{entity}": ("team", "hub"), "{queue}": ("team", "orders", "$deadletterqueue")}
    return tuple(piece for part in route.path for piece in (parts.get(part) or (part.strip("{}"),)))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {'/'.join(route.path)}")
def test_every_line_of_the_table_is_reached_in_any_case(route: Route) -> None:
    for path in (path_of(route), tuple(piece.upper() for piece in path_of(route))):
        found, match = find_route(route.method, path)
        assert found is route
        of_queue = "team/orders/$deadletterqueue" if "{queue}" in route.path else ""
        assert match.entity.lower() == ("team/hub" if "{entity}" in route.path else of_queue)
        assert match.resource == tuple(piece.lower() for piece in match.resource)


def test_a_subscription_or_group_called_messages_can_be_managed() -> None:
    for path in (("topic", "subscriptions", "messages", "rules", "r"), ("a", "messages", "consumergroups", "g")):
        for method in ("PUT", "DELETE"):
            assert find_route(method, path)[0].is_management


def test_the_alias_of_publishers_asks_the_right_of_the_publisher() -> None:
    assert find_route("POST", ("hub", "publisher", "P", "messages"))[1].resource == ("hub", "publishers", "p")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", ("hub", "messages"), None),  # a hub of that name
        ("POST", ("hub",), "DELETE, GET, PATCH, PUT"),
        ("PATCH", ("hub", "consumergroups", "group"), "DELETE, GET, PUT"),
        ("POST", ("hub", "consumergroups"), "GET"),
        ("GET", ("hub", "partitions", "0", "messages"), "POST"),
        ("HEAD", ("hub",), "DELETE, GET, PATCH, PUT"),
    ],
)
def test_other_methods_are_refused_with_those_that_exist(
    method: str, path: tuple[str, ...], allowed: str | None
) -> None:
    if allowed is None:
        assert find_route(method, path)[1].entity == "/".join(path)
        return
    with pytest.raises(HttpRefusal) as refusal:
        find_route(method, path)
    assert (refusal.value.status, refusal.value.headers) == (405, {"allow": allowed})


@pytest.mark.parametrize(
    "path",
    [
        (), ("consumergroups",), ("hub", "partitions"), ("hub", "partitions", "0"), ("hub", "publishers", "p"),
        ("$cbs",), ("$management",), ("$resources",), ("$resources", "eventhubs", "x"), ("partitions", "messages"),
        ("hub", "consumergroups", "g", "partitions", "0", "x"),
    ],
)  # fmt: skip
def test_nothing_else_is_served(path: tuple[str, ...]) -> None:
    for method in ("GET", "PUT", "POST", "DELETE"):
        with pytest.raises(HttpRefusal) as refusal:
            find_route(method, path)
        assert refusal.value.status in (404, 405)
