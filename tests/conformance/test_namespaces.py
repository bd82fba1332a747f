"""Two namespaces in one service, of two tiers, each under its own host names: rules, entities and units stay apart.

One Config.json has a Standard and a Premium namespace with hubs of one name and rules of the same names but other keys
(emulator-config contract, test T11). The service is a process, and is started again on the same data; or it is in this
process with its logs, those of both catalogs too, on the second engine (testing/replicated_store.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import (
    EventData,
    EventHubConsumerClient,
    EventHubProducerClient,
    EventHubSharedKeyCredential,
    TransportType,
)
from azure.eventhub.exceptions import AuthenticationError, EventHubError

from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, encode_message
from hubweir.amqp.transport.performatives import Close
from hubweir.auth.shared_access_signature import make_token
from hubweir.config.emulator_file import read_emulator_files
from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.settings import Settings
from hubweir.testing.frames import sasl_start
from hubweir.testing.replicated_store import ReplicatedStores
from hubweir.testing.running_namespace import running_namespace
from hubweir.testing.server_process import ServerProcess
from tests.conformance.conftest import HOST
from tests.conformance.raw_client import KEY, ROOT, RawClient, status_of
from tests.conformance.ways import CALLS, REPLICATED, server_process

pytestmark = [pytest.mark.conformance]

HOSTS = {"plain": "plain.hubs.example", "large": "large.hubs.example"}
RIGHTS: dict[str, list[str]] = {
    "all": ["Manage", "Send", "Listen"],
    "send": ["Send"],
    "listen": ["Listen"],
    "no-manage": ["Send", "Listen"],
}
HUB = "readings"
RECEIVE_FROM = f"{HUB}/ConsumerGroups/$Default/Partitions/0"


def key_of(namespace: str, rule: str) -> str:
    return f"{namespace}-{rule}-key"


def item(namespace: str, sku: str, **more: Any) -> dict[str, Any]:
    rules = [
        {"KeyName": rule, "PrimaryKey": key_of(namespace, rule), "Rights": rights} for rule, rights in RIGHTS.items()
    ]
    hub = {"Name": HUB, "PartitionCount": 1}
    return {
        "Name": namespace,
        "Sku": sku,
        "Hostnames": [HOSTS[namespace]],
        "AuthorizationRules": rules,
        "Entities": [hub],
        **more,
    }


class OnReplicatedLogs:
    """The service in this process, on replicated logs; used as a ServerProcess."""

    def __init__(self, data: Path, file: Path) -> None:
        self._data = data
        self._said = said_namespaces(Settings(), read_emulator_files([file]).namespaces)
        self._stores = ReplicatedStores()
        self._running = ExitStack()

    def __enter__(self) -> OnReplicatedLogs:
        self._namespace = self._running.enter_context(
            running_namespace(said=self._said, open_store=self._stores.open, data=str(self._data), host=(HOST,))
        )
        return self

    def __exit__(self, *reason: object) -> None:
        self._running.close()

    @property
    def host(self) -> str:
        return self._namespace.host

    @property
    def port(self) -> int:
        return self._namespace.port

    def restart(self) -> None:
        """End it, and start another one on the same logs."""
        self._running.close()
        assert not list(self._data.rglob("*.log")), "no log lies in segment files"
        self.__enter__()


Server = ServerProcess | OnReplicatedLogs


@pytest.fixture(scope="module", params=[CALLS, REPLICATED])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def data(way: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("namespaces") / "data"


@pytest.fixture(scope="module")
def server(way: str, broker_count: int, data: Path) -> Iterator[Server]:
    file = data.parent / "Config.json"
    namespaces = [item("plain", "Standard", ThroughputUnits=1), item("large", "Premium")]
    document = {"UserConfig": {"NamespaceConfig": namespaces, "LoggingConfig": {"Type": "Console"}}}
    file.write_text(json.dumps(document))
    if way == REPLICATED:
        with OnReplicatedLogs(data, file) as running:
            yield running
    else:
        arguments = ("--emulator-config", str(file))
        with server_process(data, broker_count, host=HOST, arguments=arguments) as process:
            yield process


def token(namespace: str, rule: str, *, host: str = "", path: str = "") -> str:
    """A token of a namespace's rule, made for its host unless another is named."""
    return make_token(
        f"https://{host or HOSTS[namespace]}/{path}", rule, key_of(namespace, rule), int(time.time()) + 600
    )


def http(server: Server, host: str, method: str, path: str, auth: str, body: bytes = b"") -> tuple[int, bytes]:
    """Status and body of a request whose Host header says host."""
    connection = HTTPConnection(server.host, server.port, timeout=30)
    try:
        connection.request(method, path, body, {"Host": host, "Authorization": auth})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def connected(server: Server, hostname: str) -> RawClient:
    return RawClient.connect((server.host, server.port)).start(hostname=hostname)


def put(client: RawClient, auth: str, host: str) -> tuple[int, str]:
    return status_of(client.put_token(f"sb://{host}/{HUB}", token=auth))


def official(server: Server, data: Path, namespace: str, rule: str, kind: type, **more: Any) -> Any:
    """The official client over TLS: it names the namespace's host, and connects to the address."""
    return kind(
        fully_qualified_namespace=HOSTS[namespace],
        eventhub_name=HUB,
        credential=EventHubSharedKeyCredential(rule, key_of(namespace, rule)),
        custom_endpoint_address=f"sb://{server.host}:{server.port}",
        transport_type=TransportType.Amqp,
        connection_verify=str(data / "tls" / "ca.pem"),
        retry_total=0,
        **more,
    )


@pytest.mark.parametrize("namespace", HOSTS)
@pytest.mark.parametrize("rule", RIGHTS)
def test_a_rule_gives_its_rights_over_amqp_under_its_own_host_only(server: Server, namespace: str, rule: str) -> None:
    own, other = HOSTS[namespace], next(host for name, host in HOSTS.items() if name != namespace)
    with connected(server, own) as client:
        assert put(client, token(namespace, rule), own)[0] == 202
        if "Send" in RIGHTS[rule]:
            client.publish(client.sender(HUB), encode_message(Message(body=DataBody((b"x",)))))
        else:
            assert client.refused(HUB, sends=True).condition == "amqp:unauthorized-access"
        if "Listen" in RIGHTS[rule]:
            client.receiver(RECEIVE_FROM)
        else:
            assert client.refused(RECEIVE_FROM, sends=False).condition == "amqp:unauthorized-access"
        listing = Message(
            properties=Properties(message_id="l"),
            application_properties={"operation": "LIST", "type": "com.microsoft:eventhub", "name": ""},
            body=ValueBody(None),
        )
        whole = client.put_token(f"sb://{own}/", token=token(namespace, rule))
        assert status_of(whole)[0] == 202
        assert status_of(client.request("$management", listing))[0] == (200 if "Manage" in RIGHTS[rule] else 401)
    # Neither made for the own host nor for the other one does it open anything there.
    for made_for in (own, other):
        with connected(server, other) as client:
            code, text = put(client, token(namespace, rule, host=made_for), other)
            assert code == 401, text
            assert client.refused(HUB, sends=True).condition == "amqp:unauthorized-access"
            assert client.refused(RECEIVE_FROM, sends=False).condition == "amqp:unauthorized-access"


@pytest.mark.parametrize("namespace", HOSTS)
@pytest.mark.parametrize("rule", RIGHTS)
def test_a_rule_gives_its_rights_over_http_under_its_own_host_only(server: Server, namespace: str, rule: str) -> None:
    own, other = HOSTS[namespace], next(host for name, host in HOSTS.items() if name != namespace)
    auth = token(namespace, rule)
    assert http(server, own, "POST", f"/{HUB}/messages", auth, b"x")[0] == (201 if "Send" in RIGHTS[rule] else 401)
    assert http(server, own, "GET", f"/{HUB}", auth)[0] == (200 if "Manage" in RIGHTS[rule] else 401)
    for made_for in (own, other):
        foreign = token(namespace, rule, host=made_for)
        assert http(server, other, "POST", f"/{HUB}/messages", foreign, b"x")[0] == 401
        assert http(server, other, "GET", f"/{HUB}", foreign)[0] == 401


def test_root_rules_share_a_key_and_their_tokens_open_no_other_namespace(server: Server) -> None:
    ends = int(time.time()) + 600
    for namespace, host in HOSTS.items():
        root = make_token(f"https://{host}/", ROOT, KEY, ends)
        for name, where in HOSTS.items():
            assert http(server, where, "GET", f"/{HUB}", root)[0] == (200 if name == namespace else 401)


def test_entities_of_one_name_stand_in_both_and_a_hub_made_in_one_is_not_in_the_other(server: Server) -> None:
    auth = {name: token(name, "all") for name in HOSTS}
    assert http(server, HOSTS["large"], "PUT", "/only-large", auth["large"])[0] == 201
    assert http(server, HOSTS["plain"], "GET", "/only-large", auth["plain"])[0] == 404
    assert http(server, HOSTS["large"], "GET", "/only-large", auth["large"])[0] == 200
    feed = http(server, HOSTS["plain"], "GET", "/$Resources/eventhubs", auth["plain"])[1]
    assert b"only-large" not in feed
    assert HUB.encode() in feed
    # Deleting one leaves its namesake alone.
    for name in HOSTS:
        assert http(server, HOSTS[name], "PUT", "/twin", auth[name])[0] == 201
    assert http(server, HOSTS["plain"], "DELETE", "/twin", auth["plain"])[0] == 200
    assert http(server, HOSTS["large"], "GET", "/twin", auth["large"])[0] == 200


def test_the_quota_of_a_tier_holds_in_its_namespace_only(server: Server) -> None:
    for name, most in (("plain", 19), ("large", 99)):
        auth = token(name, "all")
        path = f"/{HUB}/consumergroups/g"
        statuses = [http(server, HOSTS[name], "PUT", f"{path}{number}", auth)[0] for number in range(20)]
        assert statuses == ([201] * most)[:20] + [403] * (20 - min(most, 20))


def test_throughput_units_of_one_namespace_leave_the_other_alone(server: Server) -> None:
    """One unit takes a thousand events a second: a second thousand is refused in the namespace that holds it."""
    batch = json.dumps([{"Body": "e"}] * 900).encode()
    refused = dict.fromkeys(HOSTS, 0)
    for name, host in HOSTS.items():
        connection = HTTPConnection(server.host, server.port, timeout=30)
        head = {"Host": host, "Authorization": token(name, "all")}
        head["Content-Type"] = "application/vnd.microsoft.servicebus.json"
        for _ in range(4):
            connection.request("POST", f"/{HUB}/messages", batch, head)
            answer = connection.getresponse()
            answer.read()
            refused[name] += answer.status == 503
        connection.close()
    assert refused["plain"] >= 1
    assert refused["large"] == 0


@pytest.mark.client("azure-eventhub, blocking, TLS")
@pytest.mark.feature("SAS")
def test_the_official_client_reaches_each_namespace_by_its_host(server: Server, data: Path) -> None:
    for name in HOSTS:
        with official(server, data, name, "send", EventHubProducerClient) as producer:
            producer.send_batch([EventData(f"of {name}")])
    for name in HOSTS:
        bodies: list[str] = []
        consumer = official(server, data, name, "listen", EventHubConsumerClient, consumer_group="$Default")
        with consumer:

            def on_event(_: Any, event: Any, *, consumer: Any = consumer, bodies: list[str] = bodies) -> None:
                if event is None or event.body_as_str().startswith("of "):
                    if event is not None:
                        bodies.append(event.body_as_str())
                    consumer.close()

            consumer.receive(on_event, starting_position="-1", max_wait_time=5)
        assert bodies == [f"of {name}"]


@pytest.mark.client("azure-eventhub, blocking, TLS")
@pytest.mark.feature("errors")
def test_the_official_client_is_refused_with_a_rule_of_the_other_namespace(server: Server, data: Path) -> None:
    credential = EventHubSharedKeyCredential("send", key_of("plain", "send"))
    foreign = EventHubProducerClient(
        HOSTS["large"],
        HUB,
        credential,
        custom_endpoint_address=f"sb://{server.host}:{server.port}",
        transport_type=TransportType.Amqp,
        connection_verify=str(data / "tls" / "ca.pem"),
        retry_total=0,
    )
    with foreign, pytest.raises((AuthenticationError, EventHubError)):
        foreign.send_batch([EventData("never")])


def test_a_host_that_leads_nowhere_is_the_default_namespace_for_the_addresses_and_nobody_for_the_rest(
    server: Server,
) -> None:
    with connected(server, server.host) as client:
        auth = make_token(f"sb://{server.host}/", "send", key_of("plain", "send"), int(time.time()) + 600)
        assert put(client, auth, server.host)[0] == 202
        client.sender(HUB)
    with connected(server, "elsewhere.example") as client:
        auth = make_token("sb://elsewhere.example/", "send", key_of("plain", "send"), int(time.time()) + 600)
        assert put(client, auth, "elsewhere.example")[0] == 401


def test_where_open_names_an_address_the_first_token_says_which_namespace(server: Server) -> None:
    """As a client behind a proxy or a forwarded port: it connects to an address, its token is for the host."""
    with connected(server, server.host) as client:
        assert put(client, token("large", "send"), HOSTS["large"])[0] == 202
        client.sender(HUB)
        code, text = put(client, token("plain", "all"), HOSTS["plain"])
        assert code == 401, text


def test_rights_proved_by_sasl_plain_hold_in_one_namespace_only(server: Server) -> None:
    """SASL names no host here, so the namespace whose key it is judges; then `open` must name that one."""
    with RawClient.connect((server.host, server.port)) as client:
        client.start("PLAIN", f"\0send\0{key_of('plain', 'send')}".encode(), hostname=HOSTS["plain"])
        client.sender(HUB)
    with RawClient.connect((server.host, server.port)) as client:
        client.start("PLAIN", f"\0send\0{key_of('plain', 'send')}".encode(), hostname=HOSTS["large"])
        assert client.expect(Close).error.condition == "amqp:not-allowed"
    with RawClient.connect((server.host, server.port)) as client:
        client.start("PLAIN", f"\0send\0{key_of('large', 'send')}".encode(), hostname=HOSTS["plain"])
        assert client.expect(Close).error.condition == "amqp:not-allowed"
    with RawClient.connect((server.host, server.port)) as client:
        client.write(sasl_start("PLAIN", f"\0send\0{key_of('large', 'all')}".encode()))
        assert client.sasl_outcome() == 1


def test_both_namespaces_are_there_after_another_start(server: Server) -> None:
    for name in HOSTS:
        assert http(server, HOSTS[name], "PUT", "/kept", token(name, "all"))[0] in (201, 409)
        assert http(server, HOSTS[name], "POST", "/kept/messages", token(name, "send"), b"kept")[0] == 201
    server.restart()
    for name in HOSTS:
        path = "/kept/consumergroups/$Default/partitions"
        status, feed = http(server, HOSTS[name], "GET", path, token(name, "all"))
        assert status == 200
        assert feed.count(b"<EndSequenceNumber>0</EndSequenceNumber>") == 1
        assert http(server, HOSTS[name], "GET", f"/{HUB}", token(name, "all"))[0] == 200
