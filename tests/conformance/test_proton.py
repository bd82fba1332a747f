"""python-qpid-proton, an AMQP 1.0 library that knows nothing of Azure: SASL PLAIN, plain TCP and TLS."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import DataBody, encode_message
from hubweir.amqp.messaging.message import Message as EncodedMessage
from hubweir.amqp.messaging.outcome import Accepted
from tests.conformance.conftest import Doors

proton = pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")
from proton import Link, Message, SSLDomain  # noqa: E402  # only where the library is
from proton.reactor import Filter, LinkOption  # noqa: E402
from proton.utils import BlockingConnection, LinkDetached, SendException  # noqa: E402

WAIT_S = 30.0
EVENT = encode_message(EncodedMessage(body=DataBody((b"x",))))


def client_name(tls: bool) -> str:
    return f"python-qpid-proton, {'TLS' if tls else 'plain'}"


@pytest.fixture(
    params=[
        pytest.param(False, id="plain", marks=pytest.mark.client(client_name(False))),
        pytest.param(True, id="tls", marks=pytest.mark.client(client_name(True))),
    ]
)
def tls(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def connect(doors: Doors, tls: bool, *, key: str = "SAS_KEY_VALUE", **options: Any) -> Any:
    if tls:
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(doors.ca_file)
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
        options["ssl_domain"] = domain
    return BlockingConnection(
        f"{'amqps' if tls else 'amqp'}://{doors.host}:{doors.port}",
        timeout=WAIT_S,
        user="RootManageSharedAccessKey",
        password=key,
        allowed_mechs="PLAIN",
        sasl_enabled=True,
        allow_insecure_mechs=True,
        **options,
    )


class SettlesSecond(LinkOption):  # type: ignore[misc]
    """The receiver settles its deliveries itself, and waits for our answer."""

    def apply(self, receiver: Any) -> None:
        receiver.rcv_settle_mode = Link.RCV_SECOND


class AtSequenceNumber(LinkOption):  # type: ignore[misc]  # the library has no types
    """The service's filter, which proton knows nothing of."""

    def __init__(self, text: str) -> None:
        descriptor = proton.symbol("apache.org:selector-filter:string")
        self._filter = Filter({descriptor: proton.Described(descriptor, text)})

    def apply(self, receiver: Any) -> None:
        self._filter.apply(receiver)


def read(connection: Any, address: str, count: int, *options: LinkOption) -> list[Any]:
    receiver = connection.create_receiver(address, credit=count, options=list(options) or None)
    got = [receiver.receive(timeout=WAIT_S) for _ in range(count)]  # they come settled: there is nothing to accept
    receiver.close()
    return got


@pytest.mark.eh(7, 40)
@pytest.mark.feature("send single")
def test_events_go_out_and_come_back(doors: Doors, tls: bool, hub: str) -> None:
    connection = connect(doors, tls)
    sender = connection.create_sender(f"{hub}/Partitions/0")
    for number in range(5):
        sender.send(Message(body=f"{number}", properties={"n": number}, subject="s"))
    got = read(connection, f"{hub}/ConsumerGroups/$Default/Partitions/0", 5)
    assert [message.body for message in got] == ["0", "1", "2", "3", "4"]
    assert [message.properties["n"] for message in got] == [0, 1, 2, 3, 4]
    assert [message.annotations["x-opt-sequence-number"] for message in got] == [0, 1, 2, 3, 4]
    connection.close()


@pytest.mark.eh(44, 51)
@pytest.mark.feature("send keyed")
def test_a_key_chooses_the_partition(doors: Doors, tls: bool, hub: str) -> None:
    connection = connect(doors, tls)
    annotations = {proton.symbol("x-opt-partition-key"): "alphabet"}
    connection.create_sender(hub).send(Message(body="keyed", annotations=annotations))
    (message,) = read(connection, f"{hub}/ConsumerGroups/$Default/Partitions/2", 1)
    assert message.body == "keyed"
    assert message.annotations["x-opt-partition-key"] == "alphabet"
    connection.close()


@pytest.mark.eh(51)
@pytest.mark.feature("send to partition")
def test_to_a_partition(doors: Doors, tls: bool, hub: str) -> None:
    connection = connect(doors, tls)
    connection.create_sender(f"{hub}/Partitions/3").send(Message(body=b"three"))
    (message,) = read(connection, f"{hub}/ConsumerGroups/second/Partitions/3", 1)
    assert bytes(message.body) == b"three"
    connection.close()


@pytest.mark.eh(55, 56)
@pytest.mark.feature("receive from any position")
def test_a_position(doors: Doors, tls: bool, hub: str) -> None:
    connection = connect(doors, tls)
    sender = connection.create_sender(f"{hub}/Partitions/0")
    for number in range(6):
        sender.send(Message(body=number))
    start = AtSequenceNumber("amqp.annotation.x-opt-sequence-number > '2'")
    got = read(connection, f"{hub}/ConsumerGroups/$Default/Partitions/0", 3, start)
    assert [message.body for message in got] == [3, 4, 5]
    connection.close()


@pytest.mark.eh(48)
@pytest.mark.feature("send single")
def test_a_large_message_in_many_frames(doors: Doors, tls: bool, hub: str) -> None:
    connection = connect(doors, tls)
    connection.create_sender(f"{hub}/Partitions/0").send(Message(body=b"x" * 500_000))
    (message,) = read(connection, f"{hub}/ConsumerGroups/$Default/Partitions/0", 1)
    assert bytes(message.body) == b"x" * 500_000
    connection.close()


@pytest.mark.eh(7, 37)
@pytest.mark.feature("errors")
def test_a_wrong_key_and_a_missing_hub(doors: Doors, tls: bool) -> None:
    with pytest.raises(proton.ProtonException):
        connect(doors, tls, key="wrong")
    connection = connect(doors, tls)
    with pytest.raises(LinkDetached, match="could not be found"):
        connection.create_sender("missing")
    connection.close()


@pytest.mark.eh(46, 47)
@pytest.mark.feature("errors")
def test_a_message_over_the_limit_is_rejected_and_the_link_goes_on(doors: Doors, tls: bool, hub: str) -> None:
    connection = connect(doors, tls)
    sender = connection.create_sender(hub)
    with pytest.raises(SendException):
        sender.send(Message(body=b"x" * 1_100_000))
    sender.send(Message(body="next"))
    connection.close()


@pytest.mark.eh(65)
@pytest.mark.feature("receive from any position")
def test_a_receiver_that_settles_itself_gets_more_than_may_be_unsettled(doors: Doors, tls: bool, hub: str) -> None:
    with doors.raw() as client:
        sender = client.trusted().sender(f"{hub}/Partitions/0")
        for _ in range(6):
            outcome = client.publish(sender, pack_batch([EVENT] * 1_000), message_format=BATCH_FORMAT)
            assert isinstance(outcome.state, Accepted)
    connection = connect(doors, tls)
    address = f"{hub}/ConsumerGroups/$Default/Partitions/0"
    receiver = connection.create_receiver(address, credit=6_500, options=[SettlesSecond()])
    got = []
    for _ in range(6_000):
        got.append(receiver.receive(timeout=WAIT_S).annotations["x-opt-sequence-number"])
        receiver.accept()
    assert got == list(range(6_000))
    connection.close()
