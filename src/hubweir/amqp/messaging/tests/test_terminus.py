"""Sources and targets: what a peer sent can be sent back with the same meaning."""

from typing import Any

import pytest

from hubweir.amqp.messaging.outcome import Modified
from hubweir.amqp.messaging.terminus import SOURCE, TARGET, Coordinator, Source, Target
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.field_types import WrongType
from hubweir.amqp.types.values import Described, Symbol, ULong
from hubweir.errors import DecodeError

SELECTOR = Symbol("apache.org:selector-filter:string")
EXPRESSION = "amqp.annotation.x-opt-offset > '-1'"


def echoed(field_type: Any, sent: object) -> object:
    """What comes back when a peer's terminus is read and written again."""
    out = bytearray()
    field_type.write(out, field_type.read(decode(encode(sent))[0]))
    return decode(out)[0]


def test_a_source_has_eleven_fields_and_a_target_seven() -> None:
    for terminus, count in ((Source(address="hub"), 11), (Target(address="hub"), 7), (Source(), 11), (Target(), 7)):
        described: Any = decode(encode_composite(terminus))[0]
        assert len(described.value) == count


@pytest.mark.parametrize("descriptor", [SELECTOR, ULong(0x468C00000004), ULong(0x137000000A)], ids=str)
def test_a_filter_comes_back_with_the_descriptor_it_had(descriptor: object) -> None:
    filters = {SELECTOR: Described(descriptor, EXPRESSION), Symbol("bare"): EXPRESSION}
    fields = ["hub/ConsumerGroups/g/Partitions/0", None, None, None, None, None, None, filters]
    back: Any = echoed(SOURCE, Described(ULong(0x28), fields))
    assert back.value[7] == filters
    assert type(back.value[7][SELECTOR].descriptor) is type(descriptor)
    assert back.value[0] == fields[0]


def test_everything_a_source_can_say_comes_back() -> None:
    source = Source(
        address="hub",
        durable=2,
        expiry_policy=Symbol("never"),
        timeout=60,
        dynamic=True,
        dynamic_node_properties={Symbol("lifetime-policy"): Described(ULong(0x2B), [])},
        distribution_mode=Symbol("move"),
        filter={SELECTOR: Described(SELECTOR, EXPRESSION)},
        default_outcome=Modified(delivery_failed=True),
        outcomes=(Symbol("amqp:accepted:list"), Symbol("amqp:rejected:list")),
        capabilities=(Symbol("queue"),),
    )
    assert SOURCE.read(decode(encode_composite(source))[0]) == source
    target = Target(address="t", durable=1, timeout=5, capabilities=(Symbol("a"), Symbol("b")))
    assert TARGET.read(decode(encode_composite(target))[0]) == target


def test_one_capability_without_an_array_is_read() -> None:
    fields = ["hub", None, None, None, None, None, Symbol("queue")]
    assert TARGET.read(Described(Symbol("amqp:target:list"), fields)).capabilities == ("queue",)


def test_an_empty_list_is_a_terminus_without_an_address() -> None:
    assert TARGET.read(decode(bytes.fromhex("00532945"))[0]) == Target()
    assert SOURCE.read(decode(bytes.fromhex("00532845"))[0]) == Source()


def test_a_coordinator_is_told_apart_from_a_target() -> None:
    assert type(TARGET.read(Described(ULong(0x30), [Symbol("amqp:local-transactions")]))) is Coordinator
    with pytest.raises(WrongType):
        SOURCE.read(Described(ULong(0x30), []))


def test_an_address_that_is_no_text_is_refused_by_name() -> None:
    with pytest.raises(DecodeError, match="amqp:source:list field address holds a long"):
        SOURCE.read(Described(ULong(0x28), [5]))
