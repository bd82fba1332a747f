"""What a queue does not take is found before it is stored, by both twins alike."""

from __future__ import annotations

from array import array
from random import Random
from types import SimpleNamespace

import pytest

from hubweir.kernels import twins
from hubweir.kernels.contract import (
    BATCH_FORMAT,
    CHECK_KEY,
    CHECK_LONG,
    CHECK_MALFORMED,
    CHECK_OK,
    CHECK_SESSION,
)
from hubweir.kernels.stored_batch import HEADER_SIZE
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests.legal_bytes import annotations, compound, data_section, section, string, symbol
from hubweir.kernels.tests.test_deliver import run_of

BODY = data_section(b"body")
LONG, JUST = string("\u00e9" * 129), string("\u00e9" * 128)


def properties(**fields: bytes) -> bytes:
    places = {"message_id": 0, "group_id": 10, "reply_to_group_id": 12}
    values = [b"\x40"] * 13
    for name, value in fields.items():
        values[places[name]] = value
    return section(0x73, compound(0xC0, values))


def check(
    kernels: SimpleNamespace, *messages: bytes, needs_session: bool = False, message_format: int = 0
) -> tuple[int, int]:
    data, rows = b"", array("q")
    for message in messages:
        rows.extend([0, len(data), len(message), 0, message_format])
        data += message
    return kernels.check_messages(data, rows, 0, len(messages), 128, needs_session)


def test_what_a_queue_takes_is_taken(kernels: SimpleNamespace) -> None:
    taken = [
        BODY, b"", properties(message_id=JUST, group_id=JUST, reply_to_group_id=JUST) + BODY,
        properties(message_id=b"\x98" + bytes(16)), properties(message_id=b"\x80" + bytes(8)),
        properties(message_id=b"\xa0\x80" + bytes(128)), annotations({"x-opt-partition-key": b"\x40"}),
        annotations({"x-opt-partition-key": string("s")}) + properties(group_id=string("s")),
        annotations({"x-opt-partition-key": string("")}) + properties(group_id=string("")),
        annotations({"x-opt-partition-key": string("a"), "x-opt-via-partition-key": JUST}),
        annotations({"x-opt-partition-key": b"\xa0\x01s"}) + properties(group_id=string("s")),
        annotations({"x-opt-partition-key": b"\xb0\0\0\0\x01s", "x-opt-via-partition-key": b"\xa0\0"}),
    ]  # fmt: skip
    assert check(kernels, *taken) == (len(taken), CHECK_OK)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (properties(message_id=LONG), CHECK_LONG),
        (properties(message_id=b"\xa0\x81" + bytes(129)), CHECK_LONG),
        (properties(group_id=LONG), CHECK_LONG),
        (properties(reply_to_group_id=LONG), CHECK_LONG),
        (annotations({"x-opt-partition-key": LONG}), CHECK_LONG),
        (annotations({"x-opt-via-partition-key": LONG}), CHECK_LONG),
        (annotations({"x-opt-partition-key": string("a")}) + properties(group_id=string("b")), CHECK_KEY),
        (annotations({"x-opt-partition-key": string("")}) + properties(group_id=string("b")), CHECK_KEY),
        (annotations({"x-opt-partition-key": b"\xa0\x01a"}) + properties(group_id=string("b")), CHECK_KEY),
        (annotations({"x-opt-partition-key": b"\xb0\0\0\0\x81" + b"k" * 129}), CHECK_LONG),
        (annotations({"x-opt-via-partition-key": b"\xa0\x81" + b"k" * 129}), CHECK_LONG),
        (properties(group_id=b"\xa0\x01s"), CHECK_MALFORMED),
        (annotations({"x-opt-partition-key": b"\x54\x01"}), CHECK_MALFORMED),
        (properties(group_id=b"\x54\x01"), CHECK_MALFORMED),
        (properties(message_id=b"\x41"), CHECK_MALFORMED),
        (section(0x73, compound(0xC0, [b"\x40"] * 14)), CHECK_MALFORMED),
        (section(0x70, compound(0xC0, [b"\x40"] * 6)), CHECK_MALFORMED),
        (section(0x71, compound(0xC1, [symbol("odd")])), CHECK_MALFORMED),
        (b"\x00\x53\x75", CHECK_MALFORMED),
    ],
)
def test_the_first_message_that_is_not_taken_is_named(kernels: SimpleNamespace, message: bytes, status: int) -> None:
    assert check(kernels, BODY, message, message) == (1, status)
    inner = legal.envelope([BODY, message])
    assert check(kernels, legal.envelope([BODY]), inner, message_format=BATCH_FORMAT) == (1, status)


def test_a_session_is_missed_only_where_it_is_needed(kernels: SimpleNamespace) -> None:
    assert check(kernels, BODY) == (1, CHECK_OK)
    assert check(kernels, properties(group_id=string("")), BODY, needs_session=True) == (1, CHECK_SESSION)


def test_an_envelope_itself_is_not_looked_at_as_a_message(kernels: SimpleNamespace) -> None:
    front = properties(message_id=LONG)
    assert check(kernels, front + legal.envelope([BODY]), message_format=BATCH_FORMAT) == (1, CHECK_OK)
    assert check(kernels, section(0x77, b"\x40"), message_format=BATCH_FORMAT) == (0, CHECK_MALFORMED)
    assert check(kernels, BODY, message_format=3) == (0, CHECK_MALFORMED)


def test_whatever_is_taken_can_be_sent_again_and_the_twins_agree(compiled: SimpleNamespace) -> None:
    rng = Random(17)
    taken = 0
    for _ in range(4_000):
        message = legal.random_message(rng)
        if rng.random() < 0.5:
            message = legal.mutated(rng, message)
        row = array("q", [0, 0, len(message), 0, 0])
        needs_session = rng.random() < 0.1
        answer = twins.check_messages(message, row, 0, 1, 5, needs_session)
        assert compiled.check_messages(message, row, 0, 1, 5, needs_session) == answer
        if answer == (1, CHECK_OK):
            taken += 1
            run = run_of(message)
            compiled.encode_message(run, array("q", [HEADER_SIZE, *[0] * 12]), 0, b"0" * 16)
        envelope = legal.mutated(rng, legal.random_envelope(rng))
        row = array("q", [0, 0, len(envelope), 0, BATCH_FORMAT])
        both = [twin.check_messages(envelope, row, 0, 1, 5, False) for twin in (twins, compiled)]
        assert both[0] == both[1]
    assert taken > 500
