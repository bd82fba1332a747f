"""Operations come back from their bytes as they went, and what is none is told."""

from __future__ import annotations

from array import array
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.operation import (
    ACTIVATED,
    DEAD_LETTERED,
    DEFERRED,
    EXPIRED,
    HELD,
    LOCKED,
    MODIFIED,
    MOVED,
    NUMBERED,
    OF_TRANSACTIONS,
    RECEIVED,
    RELEASED,
    RESERVED,
    RETURNED,
    SESSION_STATE,
    SETTINGS,
    SETTLED,
    SKIPPED,
    TRANSFERRED,
    TRANSFERRING,
    UNDELIVERED,
    LoggedSettings,
    Operation,
    decode_operation,
    encode_operation,
    logged_settings,
)

RANGES = st.lists(st.tuples(st.integers(1, 2**40), st.integers(1, 2**32 - 1)), min_size=1, max_size=5).map(
    lambda pairs: array("q", [number for pair in pairs for number in pair])
)
SUB_QUEUES, NUMBERS, NAMES = st.sampled_from([0, 1]), st.integers(0, 2**63), st.binary(max_size=300)
OPERATIONS = st.one_of(
    st.builds(
        Operation,
        st.sampled_from(OF_TRANSACTIONS),
        ranges=RANGES,
        transaction=st.binary(min_size=16, max_size=16),
        is_committed=st.booleans(),
        many=st.integers(0, 2**32 - 1),
        logs=st.lists(NAMES, max_size=3).map(tuple),
    ),
    st.builds(Operation, st.just(TRANSFERRING), ranges=RANGES, sub_queue=SUB_QUEUES, number=NUMBERS, name=NAMES),
    st.builds(Operation, st.sampled_from([TRANSFERRED, RETURNED]), sub_queue=SUB_QUEUES, number=NUMBERS),
    st.builds(
        lambda number, name, pairs: Operation(
            RECEIVED, number=number, name=name, firsts=pairs[::2], ends_ms=pairs[1::2]
        ),
        NUMBERS,
        NAMES,
        st.lists(st.tuples(st.integers(1, 2**62), st.integers(-1, 2**60)), max_size=5).map(
            lambda pairs: array("q", [number for pair in pairs for number in pair])
        ),
    ),
    st.builds(
        Operation, st.sampled_from([LOCKED, RELEASED, SETTLED, EXPIRED, DEFERRED, ACTIVATED, MOVED]), ranges=RANGES
    ),
    st.builds(Operation, st.just(DEAD_LETTERED), ranges=RANGES, sub_queue=st.sampled_from([1, 2])),
    st.builds(Operation, st.just(MODIFIED), ranges=RANGES, properties=st.binary(max_size=50)),
    st.builds(
        Operation,
        st.just(SETTINGS),
        settings=st.builds(
            LoggedSettings,
            st.integers(-1, 2**60),
            st.integers(-1, 2**60),
            st.integers(1, 2_000),
            st.booleans(),
            st.booleans(),
            st.booleans(),
        ),  # fmt: skip
    ),
    st.builds(
        Operation,
        st.just(SESSION_STATE),
        session_id=st.binary(max_size=200),
        state=st.none() | st.binary(max_size=200),
        time_ms=st.integers(0, 2**60),
    ),
    st.builds(Operation, st.just(SKIPPED), time_ms=st.integers(0, 2**60)),
    st.builds(Operation, st.sampled_from([HELD, RESERVED]), many=st.integers(1, 2**32 - 1)),
    st.builds(Operation, st.just(NUMBERED), number=st.integers(1, 2**63), many=st.integers(1, 2**32 - 1)),
    st.builds(Operation, st.just(UNDELIVERED), many=st.integers(1, 2**32 - 1), properties=st.binary(max_size=50)),
)


@given(OPERATIONS)
def test_every_operation_comes_back_as_it_went(operation: Operation) -> None:
    assert decode_operation(memoryview(encode_operation(operation))) == operation


@given(OPERATIONS, st.data())
def test_what_is_cut_off_or_noise_is_an_error_of_the_store(operation: Operation, data: st.DataObject) -> None:
    whole = encode_operation(operation)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    noise = data.draw(st.sampled_from([cut, data.draw(st.binary(max_size=60))]))
    with suppress(CorruptStore, NewerFormat):
        decode_operation(memoryview(noise))


@pytest.mark.parametrize(
    "record",
    [
        b"", b"\x00", b"\x02\x00", bytes((SETTLED,)) + bytes(12), bytes((SETTLED,)) + (5).to_bytes(8, "big") + bytes(4),
        bytes((SETTLED,)) + (2**48).to_bytes(8, "big") + b"\0\0\0\1", bytes((DEAD_LETTERED, 0)),
        bytes((DEAD_LETTERED, 3)), bytes((MODIFIED,)) + b"\0\0\0\5abc", bytes((SETTINGS,)) + bytes(5),
        bytes((SESSION_STATE,)) + bytes(8) + b"\0\1", bytes((HELD,)) + bytes(4),
        bytes((RESERVED,)) + bytes(4), bytes((NUMBERED,)) + bytes(8) + b"\0\0\0\1",
        bytes((NUMBERED,)) + bytes(7) + b"\1\0\0\0\0", bytes((UNDELIVERED,)) + bytes(8),
        bytes((UNDELIVERED,)) + b"\0\0\0\1\0\0\0\2x",
    ],
)  # fmt: skip
def test_what_is_no_operation_is_corrupt(record: bytes) -> None:
    with pytest.raises((CorruptStore, NewerFormat)):
        decode_operation(memoryview(record))


def test_a_code_of_a_later_version_is_a_newer_format() -> None:
    with pytest.raises(NewerFormat, match="code 77"):
        decode_operation(memoryview(b"\x4d123"))


def test_the_logged_settings_say_what_changes_the_meaning_of_the_log() -> None:
    assert logged_settings(FragmentSettings()) == LoggedSettings()
    settings = FragmentSettings(
        default_ttl_ms=5,
        duplicate_window_ms=6,
        max_delivery_count=7,
        dead_letters_on_expiry=True,
        requires_session=True,
        duplicates_have_keys=True,
    )
    assert logged_settings(settings) == LoggedSettings(5, 6, 7, True, True, True)
    assert logged_settings(FragmentSettings(lock_duration_ms=5, max_size_bytes=3)) == LoggedSettings()
