"""Events over HTTPS: what is stored, what is answered, and that nothing else happens."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.amqp.messaging.annotations import PARTITION_KEY, PUBLISHER
from hubweir.amqp.messaging.message import DataBody, Message
from hubweir.auth.shared_access_signature import make_token
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import Refusal
from hubweir.errors import INTERNAL_ERROR, RESOURCE_LIMIT, SERVER_BUSY, STORE_OFFLINE
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.application import Application
from hubweir.gateway.http.tests.service import BATCH, ROOT, Answer, Http, token
from hubweir.limits import GatewayLimits

NewHub = Callable[..., str]


def body_of(message: Message) -> bytes:
    assert isinstance(message.body, DataBody)
    return b"".join(message.body.parts)


def annotation(message: Message, name: Any) -> object:
    return (message.message_annotations or {}).get(name)


def test_a_single_event_has_the_body_as_it_came_the_headers_and_the_key(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    answer = http.call(
        "POST",
        f"/{hub}/messages?timeout=60&api-version=2014-01",
        b"\x00\xff raw",
        WindAlert="Strong Winds",
        Quoted='"5 m/s"',
        Number="7",
        BrokerProperties='{"PartitionKey": "mast-1"}',
        content_type="application/atom+xml;type=entry;charset=utf-8",
        x_ms_retrypolicy="NoRetry",
        X_Forwarded_For="10.0.0.1",
    )
    assert (answer.status, answer.body) == (201, b"")
    assert answer.headers["content-type"] == "application/xml; charset=utf-8"
    (event,) = http.events(hub)
    assert body_of(event) == b"\x00\xff raw"
    assert event.application_properties == {"WindAlert": "Strong Winds", "Quoted": "5 m/s", "Number": "7"}
    assert annotation(event, PARTITION_KEY) == "mast-1"
    assert event.properties is not None
    assert event.properties.content_type == "application/atom+xml;type=entry;charset=utf-8"


def test_a_batch_is_stored_whole_in_one_partition(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(2)
    items = [
        {"Body": "one", "UserProperties": {"n": 1, "f": 1.5, "b": True, "s": "x", "none": None}},
        {"Body": "zwei \u00fc", "UserProperties": {}},
        {"Body": ""},
    ]
    answer = http.call("POST", f"/{hub}/messages", json.dumps(items), content_type=BATCH, WindAlert="not for batches")
    assert (answer.status, answer.body) == (201, b"")
    first, second = http.events(hub, 0), http.events(hub, 1)
    assert not (first and second)
    events = first or second
    assert [body_of(event) for event in events] == [b"one", "zwei \u00fc".encode(), b""]
    assert events[0].application_properties == {"n": 1, "f": 1.5, "b": True, "s": "x", "none": None}
    assert events[1].application_properties is None


def test_a_batch_with_a_key_goes_where_amqp_would_put_it(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(8)
    items = [{"Body": str(n), "BrokerProperties": {"PartitionKey": "contoso/building-7/floor-3/sensor-19"}}
             for n in range(3)]  # fmt: skip
    assert http.call("POST", f"/{hub}/messages", json.dumps(items), content_type=BATCH).status == 201
    events = http.events(hub, 5)  # the published vector of this key for 8 partitions
    assert [body_of(event) for event in events] == [b"0", b"1", b"2"]
    assert {annotation(event, PARTITION_KEY) for event in events} == {"contoso/building-7/floor-3/sensor-19"}


def test_a_send_to_a_partition_goes_there_whatever_its_key(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(4)
    for partition in range(4):
        answer = http.call(
            "POST", f"/{hub}/Partitions/{partition}/messages", str(partition), BrokerProperties='{"PartitionKey":"a"}'
        )
        assert answer.status == 201
    assert [[body_of(event) for event in http.events(hub, n)] for n in range(4)] == [[b"0"], [b"1"], [b"2"], [b"3"]]


@pytest.mark.parametrize("word", ["publishers", "publisher"])
def test_a_publisher_is_the_key_of_all_it_sends(http: Http, new_hub: NewHub, word: str) -> None:
    hub = new_hub()
    assert http.call("POST", f"/{hub}/{word}/device%201/messages", "x").status == 201
    named = http.call("POST", f"/{hub}/{word}/device%201/messages", "y", BrokerProperties='{"PartitionKey":"device 1"}')
    assert named.status == 201
    other = http.call("POST", f"/{hub}/{word}/device%201/messages", "z", BrokerProperties='{"PartitionKey":"device 2"}')
    assert other.status == 400
    events = http.events(hub)
    assert [body_of(event) for event in events] == [b"x", b"y"]
    assert {(annotation(event, PUBLISHER), annotation(event, PARTITION_KEY)) for event in events} == {
        ("device 1", "device 1")
    }


@pytest.mark.parametrize("size", [33_000, 32_760])
def test_an_event_with_too_large_properties_is_refused_and_its_batch_with_it(
    http: Http, new_hub: NewHub, size: int
) -> None:
    """Too large by itself; and within the limit here, but over it as AMQP encodes it."""
    hub = new_hub(1)
    properties = {"name": "x" * size, **({} if size > 32_768 else {"b": "y" * 32_760})}
    items = [{"Body": "good"}, {"Body": "bad", "UserProperties": properties}]
    answer = http.call("POST", f"/{hub}/messages", json.dumps(items), content_type=BATCH)
    assert answer.status == 400 and b"body" in answer.body
    assert http.call("POST", f"/{hub}/messages", "next").status == 201
    assert [body_of(event) for event in http.events(hub)] == [b"next"]


def test_a_send_in_chunks_is_stored_without_them(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    head = f"POST /{hub}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: {token()}\r\nconnection: close\r\n"
    answers = http.raw(f"{head}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n".encode())
    assert answers.startswith(b"HTTP/1.1 201 ")
    assert [body_of(event) for event in http.events(hub)] == [b"abcdefg"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ("x", {"BrokerProperties": "{"}),
        ("x", {"BrokerProperties": "[]"}),
        ("x", {"BrokerProperties": '{"PartitionKey": 5}'}),
        ("x", {"BrokerProperties": json.dumps({"PartitionKey": "k" * 129})}),
        ("[", {"content_type": BATCH}),
        ("[]", {"content_type": BATCH}),
        ('{"Body": "x"}', {"content_type": BATCH}),
        ('[{"Body": "x"}, {}]', {"content_type": BATCH}),
        ('[{"Body": "x", "BrokerProperties": {"PartitionKey": "a"}}, {"Body": "y"}]', {"content_type": BATCH}),
        ('[{"Body": "x", "UserProperties": {"a": {}}}]', {"content_type": BATCH}),
    ],
)
def test_what_is_malformed_is_refused_with_400_and_nothing_is_stored(
    http: Http, new_hub: NewHub, body: str, headers: dict[str, str]
) -> None:
    hub = new_hub()
    answer = http.call("POST", f"/{hub}/messages", body, **headers)
    assert answer.status == 400
    assert answer.text.startswith("<Error><Code>400</Code><Detail>") and "TrackingId:" in answer.text
    assert http.call("POST", f"/{hub}/messages", "good").status == 201
    assert [body_of(event) for event in http.events(hub)] == [b"good"]


def test_the_largest_event_is_taken_and_one_byte_more_is_not(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    limit = http.namespace.service.settings.max_message_size_bytes
    largest = limit - len(bytes.fromhex("005375b000000000"))  # the data section's own bytes
    assert http.call("POST", f"/{hub}/messages", b"x" * largest).status == 201
    assert http.call("POST", f"/{hub}/messages", b"x" * (largest + 1)).status == 413
    assert http.call("POST", f"/{hub}/messages", b"x" * (limit + 1)).status == 413
    assert [len(body_of(event)) for event in http.events(hub)] == [largest]


def test_what_is_not_there_is_told_apart_with_a_good_token_only(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    assert http.call("POST", "/nothing-here/messages", "x").status == 404
    assert http.call("POST", "/nothing-here/messages", "x", auth=None).status == 401
    assert http.call("POST", "/nothing-here/messages", "x", auth=token(hub)).status == 401
    answer = http.call("POST", f"/{hub}/partitions/1/messages", "x")
    assert answer.status == 400
    assert "partition is invalid" in answer.text


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_curl_sends(http: Http, new_hub: NewHub, scheme: str) -> None:
    hub = new_hub()
    url = f"{scheme}://{http.namespace.host}:{http.namespace.port}/{hub}/messages"
    ended = subprocess.run(
        ["curl", "-sS", "--max-time", "10", "--cacert", str(http.namespace.ca_file), "-H", f"Authorization: {token()}",
         "-H", "Expect: 100-continue", "-H", "Content-Type: text/plain", "-d", "from curl", "-w", "%{http_code}", url],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("201", "")
    assert [body_of(event) for event in http.events(hub)] == [b"from curl"]


# With a broker that refuses, holds, or loses its answers


async def post(world: World, body: bytes, *, count: int = 1, steps: int = 200) -> list[Answer | None]:
    """Requests straight to the application, all in one turn of the loop, with virtual time; None: no answer came."""
    tasks = [asyncio.ensure_future(one_post(world, body)) for _ in range(count)]
    for _ in range(steps):
        await asyncio.sleep(0)
        world.run_for(1)
        if all(task.done() for task in tasks):
            break
    for task in tasks:
        task.cancel()
    return [None if isinstance(end, BaseException) else end
            for end in await asyncio.gather(*tasks, return_exceptions=True)]  # fmt: skip


async def one_post(world: World, body: bytes) -> Answer:
    sent: list[Any] = []
    pieces = [{"type": "http.request", "body": body, "more_body": False}]
    sas = make_token("sb://localhost/", ROOT, "SAS_KEY_VALUE", world.env.now_ms() // 1000 + 600)

    async def receive() -> Any:
        return pieces.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", sas.encode()), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http", "method": "POST", "raw_path": b"/hub/messages", "query_string": b"", "headers": headers,
        "scheme": "http",
    }  # fmt: skip
    await Application(world.process, lambda: True)(scope, receive, send)
    start, body_message = sent
    return Answer(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, body_message["body"])


def test_it_is_answered_when_the_broker_has_answered_and_not_before() -> None:
    world = World()
    world.gate.hold[AppendEvents] = []
    assert asyncio.run(post(world, b"x")) == [None]
    world.gate.release(AppendEvents)
    (answer,) = asyncio.run(post(world, b"x"))
    assert answer is not None and answer.status == 201


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (Refusal(SERVER_BUSY, "Too much."), 503),
        (Refusal(RESOURCE_LIMIT, "The disk is full."), 403),
        (Refusal(STORE_OFFLINE, "No disk."), 503),
    ],
)
def test_a_known_refusal_keeps_its_status_and_gives_the_bytes_back(refusal: Refusal, status: int) -> None:
    world = World()
    world.gate.refuse[AppendEvents] = refusal
    (answer,) = asyncio.run(post(world, b"x"))
    assert answer is not None and answer.status == status
    assert ("retry-after" in answer.headers) == (refusal.condition.symbol == "com.microsoft:server-busy")
    assert world.gateway.process.budget.used == 0


def test_an_unknown_outcome_is_504_and_says_so() -> None:
    world = World()
    world.gate.refuse[AppendEvents] = Refusal(INTERNAL_ERROR, "The broker went away.", known=False)
    (answer,) = asyncio.run(post(world, b"x"))
    assert answer is not None and answer.status == 504
    assert "may be stored or not" in answer.text
    assert world.gateway.process.budget.used == 0


def test_requests_of_one_turn_share_one_append() -> None:
    world = World(hubs={"hub": 1})

    answers = asyncio.run(post(world, b"x", count=5))
    assert [answer and answer.status for answer in answers] == [201] * 5
    assert len(world.gate.sent(AppendEvents)) == 1


def test_a_request_waits_for_room_in_the_budget_before_its_body_is_read() -> None:
    world = World(limits=GatewayLimits(process_budget_bytes=100))
    budget = world.gateway.process.budget
    budget.take_bytes(100)

    async def scenario() -> list[Answer | None]:
        asyncio.get_running_loop().call_later(0.05, budget.give_back_bytes, 100)
        task = asyncio.ensure_future(post(world, b"x", steps=10**6))
        await asyncio.sleep(0.02)
        assert not world.gate.sent(AppendEvents)
        return await asyncio.wait_for(task, 30)

    (answer,) = asyncio.run(scenario())
    assert answer is not None and answer.status == 201
    assert budget.used == 0


def test_without_a_key_events_go_to_partitions_that_are_up() -> None:
    world = World(stores=2)
    world.gates[1].is_up = False
    assert [answer and answer.status for answer in asyncio.run(post(world, b"x", count=6))] == [201] * 6
    assert world.gates[1].sent(AppendEvents) == []
