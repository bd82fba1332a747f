"""Conversations that break the protocol, each with what has to become of it.

The larger part is made from the tables of fields, so a new field is tried as soon as it is declared. The last group is
the control arm of the corpus: odd, but legal or taken on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import pack

from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.security.protocol_header import AMQP_HEADER
from hubweir.amqp.transport.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from hubweir.amqp.types.composite import Composite, encode_composite
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Symbol, UInt
from hubweir.testing.frames import BEGIN, OPEN, SEND_LINK, frame, listed, raw, sasl_start, transfer


@dataclass(frozen=True, slots=True)
class BadFrame:
    """One case: the bytes behind `attached()` (or from the very start), and what has to become of it.

    scope: "connection", "session", "link", "transport" (closed without a close frame) or "none" (it is to be taken).
    conditions: one of these must be told; empty: any.
    """

    name: str
    data: bytes
    scope: str
    conditions: tuple[str, ...] = ()
    from_start: bool = False


DECODE = ("amqp:decode-error",)
FRAMING = ("amqp:connection:framing-error",)

# A value of a type that stands in no field of that type, by the name of the field's type.
WRONG_FOR = {
    "uint": (b"\xa1\x01x", b"\x41", b"\x45", b"\xc1\x01\x00"),
    "ushort": (b"\xa1\x01x", b"\x41", b"\x45", b"\x80" + b"\xff" * 8),
    "ubyte": (b"\xa1\x01x", b"\x41", b"\x45", b"\x70\x00\x00\x01\x00"),
    "ulong": (b"\xa1\x01x", b"\x41", b"\x45", b"\x54\xff"),
    "boolean": (b"\xa1\x01x", b"\x52\x01", b"\x45", b"\x56\x02"),
    "string": (b"\xa0\x01x", b"\x52\x01", b"\x45", b"\xa1\x02\xff\xfe", b"\xa1\xff"),
    "symbol": (b"\xa0\x01x", b"\x52\x01", b"\x45", b"\xa3\x01\xff"),
    "binary": (b"\xa1\x01x", b"\x52\x01", b"\x45", b"\xb0\xff\xff\xff\xff"),
}
ANYWHERE_WRONG = (
    b"\x00",  # a descriptor that never comes
    b"\x3f",  # no type has this code
    b"\xd0\xff\xff\xff\xff\xff\xff\xff\xff",  # a list of four thousand million entries
    b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",  # an array of as many nulls
    b"\xf0\x00\x00\x00\x05\x00\x00\xff\xff\x45",  # an array of 65,535 empty lists
    b"\x00\x53\x01" * 40 + b"\x40",  # forty descriptors, one inside the other
    b"\xc0\x02\x01" * 40 + b"\x40",  # forty lists
    b"\xc1\x05\x02\x00\x53\x00\x40",  # a map whose key is described
)


def _composite_with(cls: type[Composite], values: list[bytes]) -> bytes:
    body = b"".join(values)
    return b"\x00\x53" + bytes((cls.CODE,)) + b"\xd0" + pack(">II", len(body) + 4, len(values)) + body


def _encoded_fields(performative: Composite) -> list[bytes]:
    fields = []
    for field in performative.FIELDS:
        value = getattr(performative, field.name)
        out = bytearray()
        if value is None:
            out.append(0x40)
        else:
            field.type.write(out, value)
        fields.append(bytes(out))
    return fields


def _legal(performative_class: type[Composite]) -> Composite:
    return {
        Open: OPEN,
        Begin: BEGIN,
        Attach: SEND_LINK,
        Flow: Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1),
        Transfer: Transfer(handle=0, delivery_id=0, delivery_tag=b"t", message_format=0),
        Disposition: Disposition(role=False, first=0),
        Detach: Detach(handle=0),
        End: End(),
        Close: Close(),
    }[performative_class]


def wrong_fields() -> Iterator[BadFrame]:
    """Each field of each performative: a wrong type, a broken value, and null where it is mandatory."""
    for cls in (Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close):
        legal = _encoded_fields(_legal(cls))
        for index, field in enumerate(cls.FIELDS):
            candidates = [*WRONG_FOR.get(field.type.name, (b"\x52\x01", b"\xa1\x01x")), *ANYWHERE_WRONG]
            if field.mandatory:
                candidates.append(b"\x40")
            for number, value in enumerate(candidates):
                values = [*legal[:index], value, *legal[index + 1 :]]
                body = _composite_with(cls, values)
                yield _at_its_place(cls, f"{cls.__name__}.{field.name} wrong {number}", body)
        yield _at_its_place(cls, f"{cls.__name__} with a field too many", _composite_with(cls, [*legal, b"\x40"]))
        yield _at_its_place(cls, f"{cls.__name__} is a map", b"\x00\x53" + bytes((cls.CODE,)) + b"\xc1\x01\x00")
        yield _at_its_place(cls, f"{cls.__name__} cut off", _composite_with(cls, legal)[:-1])


def _at_its_place(cls: type[Composite], name: str, body: bytes) -> BadFrame:
    if cls is Open:
        return BadFrame(name, sasl_start() + AMQP_HEADER + raw(body), "connection", DECODE, from_start=True)
    return BadFrame(name, raw(body, channel=1 if cls is Begin else 0), "connection", DECODE)


def broken_frames() -> Iterator[BadFrame]:
    """Frame headers at their edges, other frame types, bodies that are no performative."""
    for size in (0, 1, 7):
        yield BadFrame(f"size {size}", raw(b"", size=size), "connection", FRAMING)
    for size in (65_537, 2**31 - 1, 2**31, 2**32 - 1):
        yield BadFrame(f"size {size}", raw(b"", size=size)[:4], "connection", FRAMING)
    for doff in (0, 1, 3, 255):
        yield BadFrame(f"data offset {doff}", raw(b"", doff=doff), "connection", FRAMING)
    for frame_type in (1, 2, 255):
        yield BadFrame(
            f"frame type {frame_type}", raw(b"\x00\x53\x17\x45", frame_type=frame_type), "connection", FRAMING
        )
    for name, body in (
        ("body is null", b"\x40"),
        ("body is a list", b"\x45"),
        ("unknown numeric descriptor", b"\x00\x53\x99\x45"),
        ("descriptor of a section", b"\x00\x53\x70\x45"),
        ("unknown symbolic descriptor", b"\x00\xa3\x03foo\x45"),
        ("descriptor is a string", b"\x00\xa1\x0eamqp:open:list\x45"),
        ("nested descriptors", b"\x00" * 100),
        ("a SASL performative", b"\x00\x53\x41\xc0\x01\x00"),
        ("half a descriptor", b"\x00\x80\x00"),
        ("a list longer than the frame", b"\x00\x53\x17\xd0\x00\x00\xff\xff\x00\x00\x00\x01\x40"),
        ("a count larger than the list", b"\x00\x53\x17\xc0\x02\xff\x40"),
    ):
        yield BadFrame(name, raw(body), "connection", DECODE)


def wrong_order() -> Iterator[BadFrame]:
    """Legal frames where they may not stand."""
    opened = sasl_start() + AMQP_HEADER
    state = ("amqp:illegal-state",)
    for cls in (Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close):
        yield BadFrame(f"{cls.__name__} before open", opened + frame(_legal(cls)), "connection", state, from_start=True)
    yield BadFrame("a second open", frame(OPEN), "connection", state)
    yield BadFrame("begin on a channel in use", frame(BEGIN), "connection", state)
    answer = Begin(remote_channel=7, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    yield BadFrame("begin answers nobody", frame(answer, channel=3), "connection", state)
    for cls in (Attach, Flow, Transfer, Disposition, Detach, End):
        data = frame(_legal(cls), channel=5)
        yield BadFrame(f"{cls.__name__} on a channel without a session", data, "connection", ("amqp:not-allowed",))
        data = frame(_legal(cls), channel=5_000)
        yield BadFrame(f"{cls.__name__} on a channel out of range", data, "connection", FRAMING)
    yield BadFrame("begin on a channel out of range", frame(BEGIN, channel=5_000), "connection", FRAMING)
    yield BadFrame("attach after end", frame(End()) + frame(SEND_LINK), "connection", ("amqp:not-allowed",))
    small = Open(container_id="peer", max_frame_size=511)
    yield BadFrame("max-frame-size 511", opened + frame(small), "connection", FRAMING, from_start=True)
    long_name = Open(container_id="c" * 257)
    yield BadFrame(
        "container-id of 257 bytes",
        opened + frame(long_name),
        "connection",
        ("amqp:resource-limit-exceeded",),
        from_start=True,
    )
    large = Open(container_id="peer", hostname="h" * 8_200)
    yield BadFrame("open over 8 KiB", opened + frame(large), "connection", FRAMING, from_start=True)


def wrong_links() -> Iterator[BadFrame]:
    """Handles, deliveries and dispositions that contradict what stands."""
    flow = Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=9, link_credit=1)
    unattached = ("amqp:session:unattached-handle",)
    yield BadFrame("flow on no link", frame(flow), "session", unattached)
    yield BadFrame("transfer on no link", transfer(0, handle=9), "session", unattached)
    yield BadFrame("detach of no link", frame(Detach(handle=9)), "session", unattached)
    yield BadFrame("transfer on handle 2**32 - 1", transfer(0, handle=2**32 - 1), "session", unattached)
    again = Attach(name="other", handle=0, role=False, source=Source(), target=Target(), initial_delivery_count=0)
    yield BadFrame("attach to a handle in use", frame(again), "session", ("amqp:session:handle-in-use",))
    beyond = Attach(name="other", handle=256, role=False, source=Source(), target=Target(), initial_delivery_count=0)
    yield BadFrame("attach over handle-max", frame(beyond), "connection", FRAMING)
    named = Attach(name="n" * 257, handle=5, role=True, source=Source(), target=Target())
    yield BadFrame("link name of 257 bytes", frame(named), "session", ("amqp:resource-limit-exceeded",))
    yield BadFrame(
        "disposition that ends before it begins",
        frame(Disposition(role=False, first=5, last=4, settled=True)),
        "session",
        ("amqp:invalid-field",),
    )
    invalid = ("amqp:invalid-field",)
    yield BadFrame("transfer on a link we send on", transfer(0, handle=1), "link", ("amqp:not-allowed",))
    yield BadFrame("delivery without an id", frame(Transfer(handle=0, delivery_tag=b"t"), b"x"), "link", invalid)
    long_tag = Transfer(handle=0, delivery_id=0, delivery_tag=b"t" * 33, message_format=0)
    yield BadFrame("delivery tag of 33 bytes", frame(long_tag, b"x"), "link", invalid)
    begun = Transfer(handle=0, delivery_id=0, delivery_tag=b"t", message_format=0, more=True)
    yield BadFrame("a delivery inside another", frame(begun, b"x") + transfer(1), "link", invalid)
    resumed = Transfer(handle=0, delivery_id=0, delivery_tag=b"t", resume=True)
    yield BadFrame("a resumed delivery", frame(resumed, b"x"), "link", ("amqp:not-implemented",))


def odd_but_legal() -> Iterator[BadFrame]:
    """The control arm, and what contracts ask to take: none of it may end anything."""
    yield BadFrame("nothing at all", b"", "none")
    yield BadFrame("an empty frame on any channel", raw(b"", channel=77), "none")
    yield BadFrame("extended header", raw(b"\x00" * 4 + encode_composite(Flow(incoming_window=1, next_outgoing_id=0,
        outgoing_window=1)), doff=3), "none")  # fmt: skip
    yield BadFrame("a transfer without credit", transfer(0), "none")
    yield BadFrame("an aborted delivery", frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"t", more=True), b"x")
        + frame(Transfer(handle=0, aborted=True)), "none")  # fmt: skip
    yield BadFrame("a delivery aborted at once", frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"t",
        aborted=True)), "none")  # fmt: skip
    yield BadFrame("delivery ids over the wrap", transfer(2**32 - 1) + transfer(0) + transfer(1), "none")
    yield BadFrame("delivery ids that jump back", transfer(9) + transfer(3) + transfer(3), "none")
    yield BadFrame("delivery without a tag", frame(Transfer(handle=0, delivery_id=0), b"x"), "none")
    yield BadFrame("a disposition about nothing", frame(Disposition(role=True, first=7, last=2**31 - 1)), "none")
    yield BadFrame("flow of a sender", frame(Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=0,
        delivery_count=0, link_credit=10_000)), "none")  # fmt: skip
    for credit in (0, 1, 2**31, 2**32 - 1):
        for count in (None, 0, 1, 2**31, 2**32 - 1):
            flow = Flow(
                next_incoming_id=count, incoming_window=credit, next_outgoing_id=0, outgoing_window=1, handle=1,
                delivery_count=count, link_credit=credit, drain=credit == 1, echo=True,
            )  # fmt: skip
            yield BadFrame(f"credit {credit}, count {count}", frame(flow), "none")
    yield BadFrame("wide numeric descriptor", raw(b"\x00\x80" + (0x13).to_bytes(8, "big") + encode(
        [None, UInt(1), UInt(0), UInt(1)])), "none")  # fmt: skip
    yield BadFrame("symbolic descriptor", raw(encode(Described(Symbol("amqp:flow:list"),
        [None, UInt(1), UInt(0), UInt(1)]))), "none")  # fmt: skip
    yield BadFrame("detach without fields but the handle", raw(listed(Detach, UInt(0))), "none")
    yield BadFrame("end as list0", raw(b"\x00\x53\x17\x45"), "none")


def malformed_corpus() -> list[BadFrame]:
    """Every case, in a fixed order; names are unique."""
    return [*wrong_fields(), *broken_frames(), *wrong_order(), *wrong_links(), *odd_but_legal()]
