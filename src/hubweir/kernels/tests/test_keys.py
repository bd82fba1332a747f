"""Keys of many deliveries at once, their hash, and deliveries sorted by partition, on both twins."""

from __future__ import annotations

from array import array
from random import Random
from types import SimpleNamespace

import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels.contract import (
    BATCH_FORMAT,
    D_DELIVERY_ID,
    DELIVERY_WIDTH,
    K_HASH,
    K_WHERE,
    KEY_ENVELOPE,
    KEY_MALFORMED,
    KEY_MESSAGE,
    KEY_NONE,
    KEY_TOO_LONG,
    KEY_WIDTH,
)
from hubweir.kernels.keys.keys import lookup3
from hubweir.kernels.tests.legal_bytes import annotations, data_section, envelope, string, table

BODY = data_section(b"body")


def keyed(key: str) -> bytes:
    return annotations({"x-opt-partition-key": string(key)}) + BODY


def deliveries(*payloads: tuple[int, bytes]) -> tuple[bytes, array[int]]:
    """Payloads back to back and their rows; ids count from 100."""
    data, rows = b"", array("q")
    for number, (message_format, payload) in enumerate(payloads):
        rows += array("q", [100 + number, len(data), len(payload), 0, message_format])
        data += payload
    return data, rows


def keys_of(
    kernels: SimpleNamespace, data: bytes, rows: array[int], most_characters: int = 128
) -> tuple[int, list[tuple[bytes, int, int]]]:
    """What find_keys answers, and of each delivery the key's text, where it is and its hash."""
    count = len(rows) // DELIVERY_WIDTH
    keys = table(count, KEY_WIDTH)
    without = kernels.find_keys(data, rows, 0, count, most_characters, keys)
    found = [tuple(keys[at : at + KEY_WIDTH]) for at in range(0, len(keys), KEY_WIDTH)]
    return without, [(data[start : start + length], where, hash_) for start, length, where, hash_ in found]


# Key and hash: the ends of the arithmetic (no byte, 12, 13, 24, 25), and the client libraries' own tests.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", 0), ("a", -16220), ("A", 9517), ("7", -15263), ("pk1", 13741), ("TEST1", -26660), ("abcdefghijkl", -2373),
        ("abcdefghijklm", -31855), ("abcdefghijklmnopqrstuvwx", 26788), ("abcdefghijklmnopqrstuvwxy", -2321),
        ("The quick brown fox jumps over the lazy dog", -31937), ("héllo", 17041), ("漢字", 17702), ("😀", -17126),
        ("!c*_!I@1^c", 15372), ("p4*!jioeO/z-!-;w:dh", -3104), ("$0cb", 26269), ("-4189260826195535198", 453),
    ],
)  # fmt: skip
def test_a_key_has_the_hash_that_every_client_expects(kernels: SimpleNamespace, key: str, expected: int) -> None:
    assert kernels.hash_key(key.encode()) == expected


def test_the_two_words_behind_the_hash_are_the_published_ones() -> None:
    assert lookup3(b"key") == (2033577996, 2178604183)
    assert lookup3("漢字".encode()) == (3538800218, 1836747644)
    assert lookup3(b"") == (0xDEADBEEF, 0xDEADBEEF)


def test_both_twins_hash_every_length_alike(compiled: SimpleNamespace) -> None:
    from hubweir.kernels import twins

    dice = Random(46)
    for length in range(140):
        key = dice.randbytes(length)
        assert compiled.hash_key(key) == twins.hash_key(key), key


def test_every_kind_of_delivery_gets_its_row(kernels: SimpleNamespace) -> None:
    inner = keyed("inner")
    data, rows = deliveries(
        (0, keyed("one")), (0, BODY), (BATCH_FORMAT, envelope([BODY], key="all")),
        (BATCH_FORMAT, envelope([inner, BODY])), (0, b"\x00\x53"), (7, BODY), (0, keyed("")), (0, keyed("é" * 128)),
        (0, keyed("é" * 129)),
    )  # fmt: skip
    without, found = keys_of(kernels, data, rows)
    assert without == 2
    assert [(text.decode(), where) for text, where, _ in found] == [
        ("one", KEY_MESSAGE), ("", KEY_NONE), ("all", KEY_ENVELOPE), ("inner", KEY_MESSAGE), ("", KEY_MALFORMED),
        ("", KEY_MALFORMED), ("", KEY_NONE), ("é" * 128, KEY_MESSAGE), ("é" * 129, KEY_TOO_LONG),
    ]  # fmt: skip
    for text, where, hash_ in found:
        counts = where in (KEY_MESSAGE, KEY_ENVELOPE)
        assert hash_ == (kernels.hash_key(text) if counts else 0)


def test_rows_in_the_middle_of_a_table_are_found_too(kernels: SimpleNamespace) -> None:
    data, rows = deliveries(*((0, keyed(f"k{number}")) for number in range(5)))
    keys = table(3, KEY_WIDTH)
    assert kernels.find_keys(data, rows, 2, 4, 128, keys) == 0
    assert [data[keys[at] : keys[at] + keys[at + 1]] for at in (0, KEY_WIDTH)] == [b"k2", b"k3"]
    assert keys[2 * KEY_WIDTH :] == table(1, KEY_WIDTH)


def grouped_ids(
    kernels: SimpleNamespace, rows: array[int], keys: array[int], turns: list[int], partitions: int
) -> list[list[int]]:
    """Delivery ids by group: one for each partition, then those that are refused."""
    count = len(rows) // DELIVERY_WIDTH
    grouped, ends = table(count, DELIVERY_WIDTH), array("q", bytes(8 * (partitions + 1)))
    kernels.group_deliveries(rows, 0, count, keys, array("q", turns), grouped, ends)
    ids = list(grouped[D_DELIVERY_ID : count * DELIVERY_WIDTH : DELIVERY_WIDTH])
    return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def test_deliveries_are_sorted_by_partition_in_the_order_they_came(kernels: SimpleNamespace) -> None:
    data, rows = deliveries(*((0, keyed(f"k{number % 7}") if number % 3 else BODY) for number in range(60)))
    keys = table(60, KEY_WIDTH)
    without = kernels.find_keys(data, rows, 0, 60, 128, keys)
    turns = [number % 4 for number in range(without)]
    groups = grouped_ids(kernels, rows, keys, turns, 4)
    expected: list[list[int]] = [[] for _ in range(5)]
    turn = iter(turns)
    for number in range(60):
        partition = abs(kernels.hash_key(b"k%d" % (number % 7))) % 4 if number % 3 else next(turn)
        expected[partition].append(100 + number)
    assert groups == expected and groups[4] == []


def test_refused_deliveries_stand_behind_all_partitions(kernels: SimpleNamespace) -> None:
    data, rows = deliveries((0, b"x"), (0, keyed("a")), (0, keyed("b" * 129)), (0, BODY))
    keys = table(4, KEY_WIDTH)
    assert kernels.find_keys(data, rows, 0, 4, 128, keys) == 1
    groups = grouped_ids(kernels, rows, keys, [1], 2)
    assert groups[2] == [100, 102] and sorted(groups[0] + groups[1]) == [101, 103] and 103 in groups[1]


def test_a_delivery_may_go_to_no_partition(kernels: SimpleNamespace) -> None:
    data, rows = deliveries((0, BODY), (0, keyed("a")), (0, BODY), (0, b"x"))
    keys = table(4, KEY_WIDTH)
    assert kernels.find_keys(data, rows, 0, 4, 128, keys) == 2
    groups = grouped_ids(kernels, rows, keys, [2, 0], 2)
    assert groups[2] == [100, 103] and 102 in groups[0] and 101 in groups[0] + groups[1]


@pytest.mark.parametrize(("turns", "partitions"), [([], 2), ([3], 2), ([-1], 2), ([0], 0)])
def test_turns_that_do_not_fit_are_refused(kernels: SimpleNamespace, turns: list[int], partitions: int) -> None:
    data, rows = deliveries((0, BODY))
    keys = table(1, KEY_WIDTH)
    kernels.find_keys(data, rows, 0, 1, 128, keys)
    with pytest.raises(KernelRefusal):
        grouped_ids(kernels, rows, keys, turns, partitions)


def test_tables_without_room_are_refused(kernels: SimpleNamespace) -> None:
    data, rows = deliveries((0, BODY), (0, BODY))
    with pytest.raises(KernelRefusal):
        kernels.find_keys(data, rows, 0, 2, 128, table(1, KEY_WIDTH))
    keys = table(2, KEY_WIDTH)
    kernels.find_keys(data, rows, 0, 2, 128, keys)
    with pytest.raises(KernelRefusal):
        kernels.group_deliveries(rows, 0, 2, keys, array("q", [0, 0]), table(1, DELIVERY_WIDTH), array("q", bytes(16)))


def test_the_columns_are_those_of_the_contract(kernels: SimpleNamespace) -> None:
    data, rows = deliveries((0, keyed("pk1")))
    keys = table(1, KEY_WIDTH)
    kernels.find_keys(data, rows, 0, 1, 128, keys)
    assert (keys[K_WHERE], keys[K_HASH]) == (KEY_MESSAGE, 13741)
