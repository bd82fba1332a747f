"""Rules of subscriptions as they travel from a gateway to a broker: the catalog's descriptions, as MessagePack."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hubweir.errors import DECODE_ERROR, ServiceError
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription
from hubweir.topic.rule import Rule, read_rule

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[SubscriptionRuleDescription, ...])


def encode_rules(rules: Iterable[SubscriptionRuleDescription]) -> bytes:
    """The rules as bytes, in their order."""
    return _ENCODER.encode(tuple(rules))


def read_rules(data: bytes) -> tuple[Rule, ...]:
    """The rules as a topic uses them. ServiceError DECODE_ERROR when the bytes are none, or what read_rule raises."""
    try:
        descriptions = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ServiceError(DECODE_ERROR, f"{len(data)} bytes are no rules of a subscription: {error}") from None
    return tuple(read_rule(each) for each in descriptions)
