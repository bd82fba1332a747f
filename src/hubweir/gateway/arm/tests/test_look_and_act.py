"""look_and_act.py: requests that want the same thing at the same time come to what they would one after the other.

They go to real services, of one process and of three, where each connection may reach another process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from hubweir.errors import ENTITY_EXISTS, NOT_FOUND, STORE_OFFLINE, Condition, ServiceError
from hubweir.gateway.arm.look_and_act import LOOKS, look_and_act, look_and_delete
from hubweir.gateway.arm.tests.arm_client import BUS, HUBS, ArmClient
from hubweir.testing.running_namespace import running_namespace

AT_ONCE, ROUNDS = 6, 4


@pytest.fixture(scope="module", params=[1, 3], ids=["one process", "three processes"])
def served(request: pytest.FixtureRequest) -> Iterator[ArmClient]:
    """Instead of `client`: of a service of one process, then of three."""
    with running_namespace(brokers=request.param) as running:
        yield ArmClient(running)


def at_once(client: ArmClient, requests: list[tuple[str, str, object]]) -> list[tuple[int, Any]]:
    """Status and JSON of the answer to each request; all are sent at the same time."""
    start = Barrier(len(requests))

    def send(request: tuple[str, str, object]) -> tuple[int, Any]:
        start.wait(30)
        return client.ask(*request)

    with ThreadPoolExecutor(len(requests)) as senders:
        return list(senders.map(send, requests))


def test_every_put_of_a_new_hub_is_kept_whatever_the_others_say(served: ArmClient) -> None:
    wishes: list[dict[str, object]] = [
        {"userMetadata": "ours"}, {"retentionDescription": {"retentionTimeInHours": 7}}, {"status": "SendDisabled"},
        {"captureDescription": {"enabled": False, "intervalInSeconds": 123}}, {}, {"partitionCount": 4},
    ]  # fmt: skip
    for number in range(ROUNDS):
        path = f"{HUBS}/hubweir/eventhubs/hub-{number}"
        answers = at_once(served, [("PUT", path, {"properties": wish}) for wish in wishes])
        assert [status for status, _ in answers] == [200] * len(wishes), answers
        told = served.ask("GET", path)[1]["properties"]
        assert (told["userMetadata"], told["status"], told["partitionCount"]) == ("ours", "SendDisabled", 4)
        assert told["retentionDescription"]["retentionTimeInHours"] == 7
        assert told["captureDescription"]["intervalInSeconds"] == 123


def namespace_told(client: ArmClient, name: str) -> dict[str, Any]:
    """A namespace as the list of all tells it, for which the client's token is good."""
    [told] = [each for each in client.ask("GET", HUBS)[1]["value"] if each["name"] == name]
    return told


@pytest.mark.parametrize(
    ("outer", "path", "wish"),
    [
        (f"{HUBS}/hubweir/eventhubs/grouped", "consumergroups/{}", {"userMetadata": "{}"}),
        (f"{HUBS}/hubweir/eventhubs/ruled", "authorizationrules/{}", {"rights": ["Send"]}),
        (f"{BUS}/hubweir", "authorizationrules/{}", {"rights": ["Listen"]}),
        (f"{BUS}/hubweir", "queues/{}", {"userMetadata": "{}"}),
        (f"{BUS}/hubweir", "topics/{}", {"userMetadata": "{}"}),
        (f"{BUS}/hubweir/topics/news", "subscriptions/{}", {"userMetadata": "{}"}),
        (f"{BUS}/hubweir/topics/news/subscriptions/all", "rules/{}", {"sqlFilter": {"sqlExpression": "a = '{}'"}}),
    ],
    ids=["group", "rule of a hub", "rule of the namespace", "queue", "topic", "subscription", "rule of a subscription"],
)
def test_of_puts_of_one_new_thing_one_makes_it_and_the_others_change_it(
    served: ArmClient, outer: str, path: str, wish: dict[str, object]
) -> None:
    if not outer.endswith("/hubweir"):
        for made in (outer.partition("/subscriptions/all")[0], outer):
            assert served.ask("PUT", made, {})[0] == 200
    for number in range(ROUNDS):
        one = f"{outer}/{path.format(f'one-{number}')}"
        bodies = [{"properties": _with(wish, str(sender))} for sender in range(AT_ONCE)]
        answers = at_once(served, [("PUT", one, body) for body in bodies])
        assert [status for status, _ in answers] == [200] * AT_ONCE, answers
        found = served.ask("GET", one)[1]["properties"]
        for name in wish:
            assert found[name] in [told["properties"][name] for _, told in answers]
        gone = [status for status, _ in at_once(served, [("DELETE", one, None)] * AT_ONCE)]
        assert 200 in gone and set(gone) <= {200, 204}
        assert served.ask("GET", one)[0] == 404


def test_of_puts_of_one_new_namespace_one_makes_it_and_all_are_kept(served: ArmClient) -> None:
    wishes: list[dict[str, object]] = [
        {"tags": {"team": "shop"}}, {"location": "westeurope"}, {"sku": {"capacity": 3}}, {}, {}, {},
    ]  # fmt: skip
    for number in range(ROUNDS):
        path = f"{HUBS}/space-{number}"
        answers = at_once(served, [("PUT", path, wish) for wish in wishes])
        assert sorted(status for status, _ in answers) == [200] * (len(wishes) - 1) + [201], answers
        told = namespace_told(served, f"space-{number}")
        assert (told["tags"], told["location"], told["sku"]["capacity"]) == ({"team": "shop"}, "westeurope", 3)
        gone = [status for status, _ in at_once(served, [("DELETE", path, None)] * AT_ONCE)]
        assert 200 in gone and set(gone) <= {200, 204}


def test_a_location_is_that_of_the_first_who_gave_one(served: ArmClient) -> None:
    places = [f"place-{number}" for number in range(AT_ONCE)]
    answers = at_once(served, [("PUT", f"{HUBS}/somewhere", {"location": place}) for place in places])
    kept = namespace_told(served, "somewhere")["location"]
    for place, (status, told) in zip(places, answers, strict=True):
        assert told["location"] == kept if status in (200, 201) else "stays there" in told["error"]["message"]
        assert (status in (200, 201)) is (place == kept)


def _with(wish: dict[str, object], text: str) -> dict[str, object]:
    """The wish with a text in the place of each pair of braces."""
    return {
        name: value.format(text) if isinstance(value, str) else _with(value, text) if isinstance(value, dict) else value
        for name, value in wish.items()
    }


# The rule itself


class Attempts:
    """Is refused with each of these conditions in turn, then done."""

    def __init__(self, *refusals: Condition) -> None:
        self.refusals, self.count = refusals, 0

    async def __call__(self) -> str:
        self.count += 1
        if self.count <= len(self.refusals):
            raise ServiceError(self.refusals[self.count - 1], f"refusal {self.count}")
        return "done"


@pytest.mark.parametrize("condition", [ENTITY_EXISTS, NOT_FOUND])
def test_whoever_was_too_late_looks_again_and_hears_the_last_refusal(condition: Condition) -> None:
    in_time = Attempts(*[condition] * (LOOKS - 1))
    assert asyncio.run(look_and_act(in_time)) == "done" and in_time.count == LOOKS
    too_late = Attempts(*[condition] * (LOOKS + 1))
    with pytest.raises(ServiceError, match=f"refusal {LOOKS}"):
        asyncio.run(look_and_act(too_late))


def test_what_looking_again_does_not_change_is_told_at_once() -> None:
    attempts = Attempts(STORE_OFFLINE)
    with pytest.raises(ServiceError, match="refusal 1"):
        asyncio.run(look_and_act(attempts))


def test_a_deletion_looks_again_and_says_204_once_somebody_else_was_faster() -> None:
    there = [Attempts(NOT_FOUND), None]
    assert asyncio.run(look_and_delete(lambda: (found := there.pop(0)) and found())).status == 204
    assert there == []
    assert asyncio.run(look_and_delete(Attempts())).status == 200
    with pytest.raises(ServiceError, match="refusal 1"):
        asyncio.run(look_and_delete(Attempts(STORE_OFFLINE)))
