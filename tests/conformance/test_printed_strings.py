"""What `hubweir serve` prints for clients to paste works with the official client, on a port that it does not know."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient, TransportType
from azure.eventhub.aio import EventHubProducerClient as AsyncProducerClient
from azure.eventhub.exceptions import ConnectError

from hubweir.cli.serve import greeting
from hubweir.service.parts import Parts
from tests.conformance.conftest import Serve

pytestmark = [pytest.mark.conformance]

HUB = "pasted"
OPTIONS: dict[str, Any] = {"eventhub_name": HUB, "retry_total": 0}


@pytest.fixture(scope="module")
def service(serve: Serve) -> Iterator[Parts]:
    # Another address than the others' services: 5671 is nobody's there, and the client would try it.
    with serve(host=("127.0.0.77",)) as namespace:
        namespace.create_event_hub(HUB)
        yield namespace.parts


def printed(service: Parts, heading: str) -> tuple[str, dict[str, Any]]:
    """The connection string below a heading, and the arguments of azure-eventhub that stand below it."""
    text = "\n".join(greeting(service)).split(f"{heading}:\n")[1]
    arguments = re.search(r"^  azure-eventhub takes (.*)$", text, re.MULTILINE) if heading == "TLS" else None
    return text.split("\n")[0].strip(), dict(re.findall(r'(\w+)="([^"]*)"', arguments[1])) if arguments else {}


async def send_async(text: str, arguments: dict[str, Any]) -> dict[str, Any]:
    client = AsyncProducerClient.from_connection_string(text, **OPTIONS, **arguments)
    async with client:
        await client.send_event(EventData("from asyncio"))
        return dict(await client.get_eventhub_properties())


def send(text: str, arguments: dict[str, Any]) -> dict[str, Any]:
    with EventHubProducerClient.from_connection_string(text, **OPTIONS, **arguments) as client:
        client.send_event(EventData("from a thread"))
        return dict(client.get_eventhub_properties())


@pytest.mark.parametrize("heading", ["plain AMQP, for this machine", "TLS"])
def test_what_is_printed_is_all_that_the_client_needs(service: Parts, heading: str) -> None:
    text, arguments = printed(service, heading)
    assert set(arguments) == ({"connection_verify", "custom_endpoint_address"} if heading == "TLS" else set())
    assert send(text, arguments)["eventhub_name"] == HUB
    assert asyncio.run(send_async(text, arguments))["eventhub_name"] == HUB


def test_the_same_arguments_lead_there_inside_websockets(service: Parts) -> None:
    text, arguments = printed(service, "TLS")
    inside = {**arguments, "transport_type": TransportType.AmqpOverWebsocket}
    assert send(text, inside)["eventhub_name"] == HUB


def test_control_arm_without_the_endpoint_the_client_tries_5671(service: Parts) -> None:
    text, arguments = printed(service, "TLS")
    del arguments["custom_endpoint_address"]
    with pytest.raises(ConnectError):
        send(text, arguments)
