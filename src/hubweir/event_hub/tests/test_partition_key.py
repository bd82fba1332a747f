"""The hash of partition keys against vectors of the service's own libraries."""

import pytest

from hubweir.errors import ServiceError
from hubweir.event_hub.hub_router import HubRouter
from hubweir.event_hub.partition_key import is_legal_key, key_too_long, partition_of_key
from hubweir.kernels import hash_key
from hubweir.kernels.keys.keys import lookup3

COUNTS = (2, 3, 4, 8, 32)
# key, c, b, hash, partition for each of COUNTS
VECTORS = [
    ("a", 1490454280, 1478903724, -16220, (0, 2, 0, 4, 28)),
    ("A", 16862113, 276328076, 9517, (1, 1, 1, 5, 13)),
    ("0", 14095470, 77822847, 28433, (1, 2, 1, 1, 17)),
    ("1", 2593300860, 700820922, 3270, (0, 0, 2, 6, 6)),
    ("7", 4157250647, 2936166454, -15263, (1, 2, 3, 7, 31)),
    ("key", 2033577996, 2178604183, 11419, (1, 1, 3, 3, 27)),
    ("pk1", 2550274195, 1855663422, 13741, (1, 1, 1, 5, 13)),
    ("TeSt", 3658538966, 3501911542, 12832, (0, 1, 0, 0, 0)),
    ("TEST", 558130599, 3022208851, 23284, (0, 1, 0, 4, 20)),
    ("TEST1", 1633976419, 2326534079, -26660, (0, 2, 0, 4, 4)),
    ("alphabet", 2024963142, 4027439116, -23478, (0, 0, 2, 6, 22)),
    ("partition-key", 2284295853, 3764408982, -15301, (1, 1, 1, 5, 5)),
    ("device-000042", 2495223717, 3166756325, -13760, (0, 2, 0, 0, 0)),
    ("abcdefghijkl", 1074985083, 1974800064, -2373, (1, 0, 1, 5, 5)),
    ("abcdefghijklm", 2457938169, 251964264, -31855, (1, 1, 3, 7, 15)),
    ("abcdefghijklmnopqrstuvwx", 459481066, 3770513230, 26788, (0, 1, 0, 4, 4)),
    ("abcdefghijklmnopqrstuvwxy", 1814676962, 531641101, -2321, (1, 2, 1, 1, 17)),
    ("contoso/building-7/floor-3/sensor-19", 4181391152, 1271133701, 309, (1, 0, 1, 5, 21)),
    ("The quick brown fox jumps over the lazy dog", 1688390982, 1652313721, -31937, (1, 2, 1, 1, 1)),
    ("1e2b9c5e-7c1e-4f0a-9d8f-0a1b2c3d4e5f", 2421578684, 4111854176, -20004, (0, 0, 0, 4, 4)),
    ("héllo", 522067505, 1441225888, 17041, (1, 1, 1, 1, 17)),
    ("漢字", 3538800218, 1836747644, 17702, (0, 2, 2, 6, 6)),
    ("😀", 3041872037, 2872374719, -17126, (0, 2, 2, 6, 6)),
]


@pytest.mark.parametrize(("key", "c", "b", "expected", "partitions"), VECTORS)
def test_a_key_hashes_as_every_client_expects(
    key: str, c: int, b: int, expected: int, partitions: tuple[int, ...]
) -> None:
    assert lookup3(key.encode()) == (c, b)
    assert hash_key(key.encode()) == expected
    assert tuple(partition_of_key(key.encode(), count) for count in COUNTS) == partitions
    assert tuple(HubRouter(count).partition_of_key(key.encode()) for count in COUNTS) == partitions


@pytest.mark.parametrize(
    ("key", "expected"),
    [("!c*_!I@1^c", 15372), ("p4*!jioeO/z-!-;w:dh", -3104), ("$0cb", 26269), ("-4189260826195535198", 453), ("", 0)],
)
def test_more_hashes_of_the_client_libraries(key: str, expected: int) -> None:
    assert hash_key(key.encode()) == expected


def test_the_empty_key_goes_to_the_first_partition() -> None:
    assert [partition_of_key(b"", count) for count in range(1, 33)] == [0] * 32


def test_every_key_lands_inside_the_hub() -> None:
    for count in range(1, 33):
        landed = {partition_of_key(f"key-{number}".encode(), count) for number in range(600)}
        assert landed == set(range(count))


def test_a_key_may_have_128_characters_not_bytes() -> None:
    assert is_legal_key(b"k" * 128)
    assert not is_legal_key(b"k" * 129)
    assert is_legal_key("漢".encode() * 128)
    assert not is_legal_key("漢".encode() * 129)
    assert is_legal_key("😀".encode() * 128)
    assert not is_legal_key("😀".encode() * 128 + b"k")
    assert not is_legal_key(b"k" * 100_000)
    assert isinstance(key_too_long(), ServiceError)
    assert "128 characters" in key_too_long().text
