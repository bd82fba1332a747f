"""SASL EXTERNAL for real: a service that trusts one CA for clients, TLS clients with good and bad certificates.

The client is a socket of the standard library with our frames; Qpid Proton, where it is installed, does the same.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hubweir.amqp.transport.performatives import Detach
from hubweir.drivers.tls import BadCertificate
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.testing.client_certificates import ClientAuthority
from hubweir.testing.frames import sasl_start
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.raw_client import ConnectionOver, RawClient
from tests.conformance.websocket_stream import WebSocketStream

RULE = "line-4"
REFUSED = 1


@dataclass
class World:
    namespace: RunningNamespace
    authority: ClientAuthority
    folder: Path

    def dial(self, certificate: Path | None) -> RawClient:
        tls = ssl.create_default_context(cafile=str(self.namespace.ca_file))
        if certificate is not None:
            tls.load_cert_chain(certificate)
        return RawClient.connect((self.namespace.host, self.namespace.port), tls=tls)

    def outcome(self, certificate: Path | None, response: bytes = b"") -> int:
        with self.dial(certificate) as client:
            client.write(sasl_start("EXTERNAL", response))
            return client.sasl_outcome()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = ClientAuthority(folder / "ours")
    with running_namespace(tls_client_ca=str(authority.ca_file)) as namespace:
        namespace.create_event_hub("events")
        world = World(namespace, authority, folder)
        set_rule(world, Rights.SEND)
        yield world


def set_rule(world: World, rights: Rights) -> None:
    rule = AuthorizationRuleDescription(RULE, rights, Secret("key"), Secret(""))
    keeper = world.namespace.service.gateway.keeper

    async def change() -> None:
        keeper.change_rules(None, lambda level: level.set(rule), lambda result: None)

    world.namespace.run(change())


def test_a_certificate_that_names_a_rule_gives_its_rights_and_no_more(world: World) -> None:
    with world.dial(world.authority.certificate(RULE)) as client:
        client.start("EXTERNAL", b"")
        client.sender("events")
        refused = client.refused("events/ConsumerGroups/$Default/Partitions/0", sends=False)
        assert refused.condition == "amqp:unauthorized-access"


@pytest.mark.parametrize(
    ("names", "dns_names", "response"),
    [
        ((RULE,), (), RULE.encode()),
        ((RULE.upper(),), (), b""),
        ((), (RULE,), b""),
        ((RULE,), ("another", "names"), b""),
    ],
    ids=["for itself", "in another case", "by its DNS name", "by its common name first"],
)
def test_names_that_mean_the_rule(
    world: World, names: tuple[str, ...], dns_names: tuple[str, ...], response: bytes
) -> None:
    assert world.outcome(world.authority.certificate(*names, dns_names=dns_names), response) == 0


@pytest.mark.parametrize(
    ("names", "dns_names", "response"),
    [
        (("nobody",), (), b""),
        (("nobody",), (RULE,), b""),
        ((RULE, "nobody"), (), b""),
        ((), (RULE, "nobody"), b""),
        ((), (), b""),
        ((RULE,), (), b"RootManageSharedAccessKey"),
    ],
    ids=["no rule", "the common name decides", "two names", "two DNS names", "no name", "for somebody else"],
)
def test_names_that_mean_no_rule_are_refused(
    world: World, names: tuple[str, ...], dns_names: tuple[str, ...], response: bytes
) -> None:
    certificate = world.authority.certificate(*names, dns_names=dns_names)
    assert world.outcome(certificate, response) == REFUSED


def test_without_a_certificate_or_without_tls_external_is_refused_and_a_token_is_not(world: World) -> None:
    assert world.outcome(None) == REFUSED
    address = (world.namespace.host, world.namespace.port)
    with RawClient.connect(address) as client:
        client.write(sasl_start("EXTERNAL", RULE.encode()))
        assert client.sasl_outcome() == REFUSED
        assert client.is_closed_by_server()
    with world.dial(None) as client:
        client.trusted().sender("events")


def test_a_certificate_counts_inside_a_websocket_too(world: World) -> None:
    url = f"wss://{world.namespace.host}:{world.namespace.port}/$servicebus/websocket"
    for names, code in (((RULE,), 0), (("nobody",), REFUSED), ((), REFUSED)):
        certificate = str(world.authority.certificate(*names)) if names else ""
        stream = WebSocketStream(url, ca_file=str(world.namespace.ca_file), certificate=certificate)
        with RawClient(stream) as client:
            client.write(sasl_start("EXTERNAL", b""))
            assert client.sasl_outcome() == code, names


def test_two_connections_have_each_their_own_certificate(world: World) -> None:
    with world.dial(world.authority.certificate(RULE)) as mine, world.dial(None) as other:
        mine.start("EXTERNAL", b"")
        other.start()
        mine.sender("events")
        assert other.refused("events", sends=True).condition == "amqp:unauthorized-access"


@pytest.mark.parametrize("kind", ["of another CA", "ended", "of a server", "signed by itself in our CA's name"])
def test_a_bad_certificate_ends_the_handshake(world: World, kind: str) -> None:
    match kind:
        case "of another CA":
            certificate = ClientAuthority(world.folder / "other", name="another").certificate(RULE)
        case "ended":
            certificate = world.authority.certificate(RULE, lifetime_s=-3_600)
        case "of a server":
            certificate = world.authority.certificate(RULE, for_servers=True)
        case _:
            certificate = ClientAuthority(world.folder / "twin").certificate(RULE)
    # With TLS 1.3 the client's half of the handshake is over before the server has looked.
    with pytest.raises((ssl.SSLError, ConnectionError, ConnectionOver)):
        world.outcome(certificate)
    assert world.outcome(world.authority.certificate(RULE)) == 0


def test_a_rule_that_loses_its_right_takes_it_from_the_connection(world: World) -> None:
    with world.dial(world.authority.certificate(RULE)) as client:
        client.start("EXTERNAL", b"")
        client.sender("events")
        set_rule(world, Rights.LISTEN)
        try:
            assert client.expect(Detach).error.condition == "amqp:unauthorized-access"
        finally:
            set_rule(world, Rights.SEND)


def test_no_certificate_is_asked_for_unless_a_ca_is_set(tmp_path: Path) -> None:
    authority = ClientAuthority(tmp_path)
    with running_namespace() as namespace:
        world = World(namespace, authority, tmp_path)
        set_rule(world, Rights.SEND)
        assert world.outcome(authority.certificate(RULE)) == REFUSED


def test_a_file_without_a_ca_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for name in ("empty.pem", "missing.pem"):
        with pytest.raises(BadCertificate, match=name), running_namespace(tls_client_ca=str(tmp_path / name)):
            raise AssertionError("it started")


def test_proton_sends_by_its_certificate(world: World) -> None:
    pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")
    from proton import ConnectionException, Message, SSLDomain
    from proton.utils import BlockingConnection

    def connect(certificate: Path) -> BlockingConnection:
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(world.namespace.ca_file))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
        domain.set_credentials(str(certificate), str(certificate), None)
        url = f"amqps://{world.namespace.host}:{world.namespace.port}"
        return BlockingConnection(url, timeout=10.0, ssl_domain=domain, allowed_mechs="EXTERNAL", sasl_enabled=True)

    connection = connect(world.authority.certificate(RULE))
    connection.create_sender("events").send(Message(body="by certificate"))
    connection.close()
    with pytest.raises(ConnectionException, match="Authentication failed"):
        connect(world.authority.certificate("nobody"))
