"""The connect page: what a program in each language needs to reach an entity, ready to be copied, without a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubweir.gateway.http.exchange import Response
from hubweir.namespace.entity import EntityKind
from hubweir.portal.client_strings import ClientPlace, client_place
from hubweir.portal.visit import Visit


@dataclass(frozen=True, slots=True)
class ClientExample:
    """One official client. install: how it is had. code: connects and sends. over_tls: its option for another port."""

    language: str
    install: str
    code: str
    over_tls: str


async def connect(visit: Visit) -> Response:
    """Of an entity: its name stands in the code."""
    entity = visit.any_entity()
    place = client_place(visit)
    is_hub = entity.kind is EntityKind.EVENT_HUB
    name = entity.description.parent or entity.name
    examples = _event_hub_examples(name, place) if is_hub else _messaging_examples(name, place, entity.kind)
    return visit.show("connect.html", entity=entity, examples=examples, place=place)


def _event_hub_examples(name: str, place: ClientPlace) -> Sequence[ClientExample]:
    endpoint = place.custom_endpoint
    return (
        ClientExample(
            "Python",
            "pip install azure-eventhub",
            "import os\nfrom azure.eventhub import EventData, EventHubProducerClient\n\n"
            "producer = EventHubProducerClient.from_connection_string(\n"
            f'    os.environ["CONNECTION_STRING"], eventhub_name="{name}"\n)\n'
            'with producer:\n    producer.send_event(EventData("hello"))',
            f'custom_endpoint_address="{endpoint}"',
        ),
        ClientExample(
            "JavaScript",
            "npm install @azure/event-hubs",
            'const { EventHubProducerClient } = require("@azure/event-hubs");\n\n'
            f'const producer = new EventHubProducerClient(process.env.CONNECTION_STRING, "{name}");\n'
            'await producer.sendBatch([{ body: "hello" }]);\nawait producer.close();',
            f'{{ customEndpointAddress: "{endpoint}" }}',
        ),
        ClientExample(
            "Java",
            "com.azure:azure-messaging-eventhubs",
            "EventHubProducerClient producer = new EventHubClientBuilder()\n"
            f'    .connectionString(System.getenv("CONNECTION_STRING"), "{name}")\n'
            '    .buildProducerClient();\nproducer.send(List.of(new EventData("hello")));\nproducer.close();',
            f'.customEndpointAddress("{endpoint}")',
        ),
        ClientExample(
            ".NET",
            "dotnet add package Azure.Messaging.EventHubs",
            "await using var producer = new EventHubProducerClient(\n"
            f'    Environment.GetEnvironmentVariable("CONNECTION_STRING"), "{name}");\n'
            'await producer.SendAsync(new[] { new EventData("hello") });',
            f'ConnectionOptions.CustomEndpointAddress = new Uri("{endpoint}")',
        ),
        ClientExample(
            "Go",
            "go get github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs",
            "producer, err := azeventhubs.NewProducerClientFromConnectionString(\n"
            f'    os.Getenv("CONNECTION_STRING"), "{name}", nil)',
            f'CustomEndpoint: "{endpoint}"',
        ),
    )


def _messaging_examples(name: str, place: ClientPlace, kind: EntityKind) -> Sequence[ClientExample]:
    is_queue, endpoint = kind is EntityKind.QUEUE, place.custom_endpoint
    sender = f'get_queue_sender("{name}")' if is_queue else f'get_topic_sender("{name}")'
    noun = "queueName" if is_queue else "topicName"
    # With a custom endpoint azure-servicebus (7.15) takes WebSockets unless it is told a transport, and brings nothing
    # that speaks them.
    transport = ", TransportType" if endpoint else ""
    return (
        ClientExample(
            "Python",
            "pip install azure-servicebus",
            f"import os\nfrom azure.servicebus import ServiceBusClient, ServiceBusMessage{transport}\n\n"
            'with ServiceBusClient.from_connection_string(os.environ["CONNECTION_STRING"]) as client:\n'
            f'    with client.{sender} as sender:\n        sender.send_messages(ServiceBusMessage("hello"))',
            f'custom_endpoint_address="{endpoint}", transport_type=TransportType.Amqp',
        ),
        ClientExample(
            "JavaScript",
            "npm install @azure/service-bus",
            'const { ServiceBusClient } = require("@azure/service-bus");\n\n'
            "const client = new ServiceBusClient(process.env.CONNECTION_STRING);\n"
            f'await client.createSender("{name}").sendMessages({{ body: "hello" }});\nawait client.close();',
            f'{{ customEndpointAddress: "{endpoint}" }}',
        ),
        ClientExample(
            "Java",
            "com.azure:azure-messaging-servicebus",
            "ServiceBusSenderClient sender = new ServiceBusClientBuilder()\n"
            '    .connectionString(System.getenv("CONNECTION_STRING"))\n'
            f'    .sender().{noun}("{name}").buildClient();\n'
            'sender.sendMessage(new ServiceBusMessage("hello"));\nsender.close();',
            f'.customEndpointAddress("{endpoint}")',
        ),
        ClientExample(
            ".NET",
            "dotnet add package Azure.Messaging.ServiceBus",
            "await using var client = new ServiceBusClient(\n"
            '    Environment.GetEnvironmentVariable("CONNECTION_STRING"));\n'
            f'await client.CreateSender("{name}").SendMessageAsync(new ServiceBusMessage("hello"));',
            f'CustomEndpointAddress = new Uri("{endpoint}")',
        ),
        ClientExample(
            "Go",
            "go get github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus",
            'client, err := azservicebus.NewClientFromConnectionString(os.Getenv("CONNECTION_STRING"), nil)\n'
            f'sender, err := client.NewSender("{name}", nil)',
            f'CustomEndpoint: "{endpoint}"',
        ),
    )
