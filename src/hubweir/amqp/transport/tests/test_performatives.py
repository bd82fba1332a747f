"""Performatives: the exact bytes that clients need, and whatever form they send."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Modified, Received, Rejected, Released, TransactionalState
from hubweir.amqp.messaging.terminus import Coordinator, Source, Target
from hubweir.amqp.transport.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    Transfer,
    decode_performative,
)
from hubweir.amqp.types.composite import encode_composite, encode_composite_into
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Symbol, UInt, ULong
from hubweir.errors import DecodeError

ERROR = AmqpError(condition="amqp:not-found", description="no such hub", info={Symbol("hub"): "orders"})
FILTER = {
    Symbol("apache.org:selector-filter:string"): Described(
        ULong(0x468C00000004), "amqp.annotation.x-opt-offset > '@latest'"
    )
}
FULL: list[Performative] = [
    Open(
        container_id="hub",
        hostname="localhost",
        max_frame_size=65536,
        channel_max=4999,
        idle_time_out=240_000,
        outgoing_locales=(Symbol("en-US"),),
        incoming_locales=(Symbol("en-US"),),
        offered_capabilities=(Symbol("a"), Symbol("b")),
        desired_capabilities=(Symbol("c"),),
        properties={Symbol("product"): "hubweir"},
    ),
    Begin(
        remote_channel=1,
        next_outgoing_id=1,
        incoming_window=5000,
        outgoing_window=5000,
        handle_max=255,
        offered_capabilities=(Symbol("a"),),
        desired_capabilities=(Symbol("b"),),
        properties={Symbol("x"): None},
    ),
    Attach(
        name="link",
        handle=3,
        role=True,
        snd_settle_mode=0,
        rcv_settle_mode=1,
        source=Source(address="hub/ConsumerGroups/$Default/Partitions/0", filter=FILTER),  # type: ignore[arg-type]
        target=Target(address="client"),
        unsettled={b"tag": Described(ULong(0x24), [])},
        incomplete_unsettled=True,
        initial_delivery_count=0,
        max_message_size=1 << 20,
        offered_capabilities=(Symbol("a"),),
        desired_capabilities=(Symbol("b"),),
        properties={Symbol("com.microsoft:epoch"): 5},
    ),
    Flow(
        next_incoming_id=2**32 - 1,
        incoming_window=1,
        next_outgoing_id=2,
        outgoing_window=3,
        handle=4,
        delivery_count=5,
        link_credit=6,
        available=7,
        drain=True,
        echo=True,
        properties={Symbol("x"): 1},
    ),
    Transfer(
        handle=0,
        delivery_id=7,
        delivery_tag=b"\0\0\0\7",
        message_format=0x80013700,
        settled=True,
        more=True,
        rcv_settle_mode=0,
        state=Received(section_number=1, section_offset=2),
        resume=True,
        aborted=True,
        batchable=True,
    ),
    Disposition(role=True, first=5, last=900, settled=True, state=Rejected(error=ERROR), batchable=True),
    Detach(handle=1, closed=True, error=ERROR),
    End(error=ERROR),
    Close(error=ERROR),
]
SPARE: list[Performative] = [
    Open(container_id=""),
    Begin(next_outgoing_id=0, incoming_window=0, outgoing_window=0),
    Attach(name="", handle=0, role=False),
    Flow(incoming_window=0, next_outgoing_id=0, outgoing_window=0),
    Transfer(handle=0),
    Disposition(role=False, first=0),
    Detach(handle=0),
    End(),
    Close(),
]
FIELD_COUNT = {Open: 10, Begin: 8, Attach: 14, Flow: 11, Transfer: 11, Disposition: 6, Detach: 3, End: 1, Close: 1}


def named(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize("performative", FULL + SPARE, ids=named)
def test_every_field_is_written_behind_a_short_numeric_descriptor(performative: Performative) -> None:
    data = encode_composite(performative)
    assert data[:3] == bytes((0x00, 0x53, performative.CODE))
    assert data[3] in (0xC0, 0xD0)
    described, position = decode(data)
    assert isinstance(described, Described)
    assert position == len(data)
    fields: Any = described.value
    assert len(fields) == FIELD_COUNT[type(performative)]


@pytest.mark.parametrize("performative", FULL + SPARE, ids=named)
def test_a_performative_is_read_back_and_the_payload_left(performative: Performative) -> None:
    data = encode_composite(performative)
    assert decode_performative(data) == (performative, len(data))
    assert decode_performative(memoryview(b"head" + data + b"payload"), 4) == (performative, len(data) + 4)
    out = bytearray(b"head")
    encode_composite_into(out, performative)
    assert out == b"head" + data


@pytest.mark.parametrize("performative", FULL + SPARE, ids=named)
def test_every_truncation_is_a_decode_error(performative: Performative) -> None:
    data = encode_composite(performative)
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            decode_performative(data[:length])
        with pytest.raises(DecodeError):
            decode_performative(data, 0, length)


@pytest.mark.parametrize("performative", FULL + SPARE, ids=named)
def test_symbolic_and_wide_descriptors_and_trimmed_lists_are_read(performative: Performative) -> None:
    described: Any = decode(encode_composite(performative))[0]
    fields = list(described.value)
    while fields and fields[-1] is None:
        fields.pop()
    for descriptor in (encode(Symbol(performative.NAME)), b"\x80" + performative.CODE.to_bytes(8, "big")):
        assert decode_performative(b"\0" + descriptor + encode(fields))[0] == performative


@pytest.mark.parametrize("cls", list(FIELD_COUNT), ids=lambda cls: cls.__name__)
def test_what_is_mandatory_is_missed_by_name(cls: type[Performative]) -> None:
    mandatory = [field.name for field in cls.FIELDS if field.mandatory]
    data = bytes((0x00, 0x53, cls.CODE, 0x45))
    if mandatory:
        with pytest.raises(DecodeError, match=f"{cls.NAME} field {mandatory[0]} is mandatory and missing"):
            decode_performative(data)
    else:
        assert decode_performative(data)[0] == cls()  # type: ignore[call-arg]


@pytest.mark.parametrize("performative", FULL, ids=named)
def test_a_value_of_the_wrong_type_is_a_decode_error_that_names_the_field(performative: Performative) -> None:
    described: Any = decode(encode_composite(performative))[0]
    for index, field in enumerate(performative.FIELDS):
        fields = list(described.value)
        fields[index] = 1.5  # no field takes a double
        with pytest.raises(DecodeError, match=f"{performative.NAME} field {field.name} holds a double"):
            decode_performative(encode(Described(described.descriptor, fields)))


def test_an_error_always_has_three_fields_and_a_text() -> None:
    data = encode_composite(Disposition(role=True, first=0, state=Rejected(error=AmqpError(condition="x"))))
    assert bytes.fromhex("00531d" + "c00703" + "a30178" + "a100" + "40") in data


def test_a_refused_attach_has_null_for_source_and_target() -> None:
    described: Any = decode(encode_composite(Attach(name="x", handle=0, role=False)))[0]
    assert described.value[5] is None and described.value[6] is None


def test_a_coordinator_is_recognised_as_a_target() -> None:
    attach = Attach(name="t", handle=0, role=False, target=Coordinator(capabilities=(Symbol("amqp:local"),)))
    assert decode_performative(encode_composite(attach))[0] == attach


def test_a_state_of_a_transaction_is_read_with_its_outcome_and_an_unknown_one_is_handed_on_as_it_came() -> None:
    unknown, known = (Described(ULong(code), [b"txn", Described(ULong(0x24), [])]) for code in (0x99, 0x34))
    for came, read in ((unknown, unknown), (known, TransactionalState(txn_id=b"txn", outcome=Accepted()))):
        performative, _ = decode_performative(encode_composite(Disposition(role=True, first=0, state=came)))
        assert isinstance(performative, Disposition) and performative.state == read


@pytest.mark.parametrize("data", ["", "40", "005340", "00531940", "005329c00100", "005375a000", "0053100053", "c00100"])
def test_what_is_no_performative_is_a_decode_error(data: str) -> None:
    with pytest.raises(DecodeError):
        decode_performative(bytes.fromhex(data))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FULL), st.data())
def test_changed_bytes_raise_nothing_but_decode_errors(performative: Performative, data: st.DataObject) -> None:
    changed = bytearray(encode_composite(performative))
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found, position = decode_performative(changed)
    except DecodeError:
        return
    assert type(found) in FIELD_COUNT and position <= len(changed)


# The Azure client's own codec: it reads by position, so it is the witness for the strict form.


def azure_plain(value: Any) -> Any:
    """What the client's decoder makes of a field of ours."""
    if isinstance(value, (Source, Target, AmqpError)):
        return [azure_plain(getattr(value, field.name)) for field in value.FIELDS]
    if isinstance(value, (Accepted, Rejected, Released, Modified, Received)):
        name = type(value).__name__.lower()
        return {name: [azure_plain(getattr(value, field.name)) for field in value.FIELDS]}
    if isinstance(value, Described):
        state = {0x24: "accepted"}.get(value.descriptor)  # type: ignore[call-overload]
        return {state: azure_plain(value.value)} if state else azure_plain(value.value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (list, tuple)):
        return [azure_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {azure_plain(key): azure_plain(entry) for key, entry in value.items()}
    return value


@pytest.mark.parametrize("performative", FULL + SPARE, ids=named)
def test_the_azure_client_reads_every_field_and_the_payload(performative: Performative) -> None:
    azure = pytest.importorskip("azure.eventhub._pyamqp._decode")
    data = encode_composite(performative) + b"payload"
    code, fields = azure.decode_frame(memoryview(data))
    if isinstance(performative, Transfer):
        assert bytes(fields.pop()) == b"payload"
    assert code == performative.CODE
    assert fields == [azure_plain(getattr(performative, field.name)) for field in performative.FIELDS]


def test_we_read_the_frames_that_the_azure_client_writes() -> None:
    pytest.importorskip("azure.eventhub")
    from azure.eventhub._pyamqp import performatives as theirs
    from azure.eventhub._pyamqp._encode import encode_frame
    from azure.eventhub._pyamqp.endpoints import Source as TheirSource
    from azure.eventhub._pyamqp.endpoints import Target as TheirTarget

    def read(frame: Any) -> Performative:
        data = bytes(encode_frame(frame)[1])
        performative, position = decode_performative(data)
        assert position == len(data) - len(getattr(frame, "payload", None) or b"")
        return performative

    opened = read(
        theirs.OpenFrame(
            container_id="c",
            hostname="h",
            max_frame_size=1 << 20,
            channel_max=65535,
            idle_timeout=None,
            outgoing_locales=None,
            incoming_locales=None,
            offered_capabilities=None,
            desired_capabilities=["cap"],
            properties={"product": "azsdk"},
        )
    )
    assert opened == Open(
        container_id="c",
        hostname="h",
        max_frame_size=1 << 20,
        desired_capabilities=(Symbol("cap"),),
        properties={Symbol("product"): "azsdk"},
    )
    assert read(
        theirs.BeginFrame(
            remote_channel=None,
            next_outgoing_id=0,
            incoming_window=64 * 1024,
            outgoing_window=64 * 1024,
            handle_max=4294967295,
            offered_capabilities=None,
            desired_capabilities=None,
            properties=None,
        )
    ) == Begin(next_outgoing_id=0, incoming_window=65536, outgoing_window=65536)
    attach = read(
        theirs.AttachFrame(
            name="n",
            handle=1,
            role=True,
            send_settle_mode=0,
            rcv_settle_mode=0,
            source=TheirSource(
                address="amqps://h/hub", durable=0, expiry_policy="session-end", timeout=0, dynamic=False
            ),
            target=TheirTarget(address="t", durable=0, expiry_policy="session-end", timeout=0, dynamic=False),
            unsettled=None,
            incomplete_unsettled=False,
            initial_delivery_count=None,
            max_message_size=1 << 20,
            offered_capabilities=None,
            desired_capabilities=["com.microsoft:georeplication"],
            properties=None,
        )
    )
    assert isinstance(attach, Attach)
    assert attach.source == Source(address="amqps://h/hub") and attach.target == Target(address="t")
    assert attach.desired_capabilities == ("com.microsoft:georeplication",)
    transfer = read(
        theirs.TransferFrame(
            payload=b"payload",
            handle=1,
            delivery_id=2,
            delivery_tag=b"\0\0\0\2",
            message_format=0x80013700,
            settled=False,
            more=False,
            rcv_settle_mode=None,
            state=None,
            resume=None,
            aborted=None,
            batchable=None,
        )
    )
    assert transfer == Transfer(
        handle=1, delivery_id=2, delivery_tag=b"\0\0\0\2", message_format=UInt(0x80013700), settled=False
    )
    assert read(theirs.EndFrame(error=None)) == End()
