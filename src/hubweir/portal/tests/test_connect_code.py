"""The connect page's code for Python works over TLS with the option below it, where that client alone is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.connection_string import AMQPS_PORT, ConnectionString
from hubweir.namespace.entity import EntityKind
from hubweir.portal.client_strings import ClientPlace
from hubweir.portal.connect_pages import ClientExample, _event_hub_examples, _messaging_examples
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

# azure-eventhub and azure-servicebus bring no client of WebSockets; the tests have one.
AS_INSTALLED = "import sys\nsys.modules['websocket'] = None\n"
STRING = 'os.environ["CONNECTION_STRING"]'


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        running.create_event_hub("orders")
        running.create_queue("kitchen")
        Administration(ConnectionString.parse(running.connection_string())).create(EntityType.TOPIC, "menu", {})
        yield running


def said(example: ClientExample, option: str, namespace: RunningNamespace) -> str:
    """What it says of its end, with the option; nothing where it ended well."""
    assert example.language == "Python" and example.code.count(STRING) == 1
    program = AS_INSTALLED + example.code.replace(
        STRING, f"{STRING}, connection_verify={str(namespace.ca_file)!r}{option}"
    )
    variables = {"CONNECTION_STRING": namespace.connection_string(plain=False)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stderr if done.returncode else ""


def example_of(kind: EntityKind, namespace: RunningNamespace) -> ClientExample:
    place = ClientPlace(namespace.host, namespace.port)
    if kind is EntityKind.EVENT_HUB:
        return _event_hub_examples("orders", place)[0]
    return _messaging_examples("kitchen" if kind is EntityKind.QUEUE else "menu", place, kind)[0]


@pytest.mark.parametrize("kind", [EntityKind.EVENT_HUB, EntityKind.QUEUE, EntityKind.TOPIC])
def test_code_for_python_connects_over_tls_by_its_option(kind: EntityKind, namespace: RunningNamespace) -> None:
    example = example_of(kind, namespace)
    assert said(example, f", {example.over_tls}", namespace) == ""


def test_control_arm_the_place_alone_makes_the_client_of_service_bus_take_websockets(
    namespace: RunningNamespace,
) -> None:
    example = example_of(EntityKind.QUEUE, namespace)
    place, _, transport = example.over_tls.partition(", ")
    assert transport == "transport_type=TransportType.Amqp"
    assert "websocket-client" in said(example, f", {place}", namespace)


def test_code_names_no_transport_where_the_port_is_the_usual_one() -> None:
    [example, *_] = _messaging_examples("kitchen", ClientPlace("localhost", AMQPS_PORT), EntityKind.QUEUE)
    assert "TransportType" not in example.code
