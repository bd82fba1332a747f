import pyarrow as pa
import pytest

from hubweir.spark.errors import IllegalRow
from hubweir.spark.sink.row_limits import check_limits

MAP = pa.map_(pa.string(), pa.string())


def check(
    keys: list[str | None] | None = None,
    publishers: list[str | None] | None = None,
    properties: list[dict[str, str | None] | None] | None = None,
) -> None:
    """Columns behind a first row that is cut away: offsets of a slice do not begin at 0."""
    texts = (None if each is None else pa.array([None, *each], pa.string()).slice(1) for each in (keys, publishers))
    maps = None
    if properties is not None:
        entries = [None if each is None else list(each.items()) for each in properties]
        maps = pa.array([[("cut", "x" * 40_000)], *entries], MAP).slice(1)
    check_limits(*texts, maps, lambda row: f"row {row + 1}")


def test_what_just_fits_is_taken() -> None:
    check(keys=[None, "", "ü" * 500, "k" * 32_742], publishers=[None, "", "ü" * 128, " a;b'c%"])
    check(properties=[None, {}, {"a": None, "b": ""}, {"name": "v" * 32_754}])
    check(keys=["k" * 128], properties=[{str(number): "v" * 100 for number in range(600)}])
    check(keys=[], publishers=[], properties=[])


def test_a_long_key_is_refused_with_its_row() -> None:
    with pytest.raises(IllegalRow, match="row 3 has a partitionKey of 32743 bytes, and 32742 are allowed: shorten"):
        check(keys=["k", None, "k" * 32_743])


def test_a_long_publisher_is_refused_with_its_row() -> None:
    with pytest.raises(IllegalRow, match="row 2 has a publisher of 300 characters, and 128 are allowed"):
        check(publishers=["p", "p" * 300])


@pytest.mark.parametrize("name", ["a/b", "a?b", "a#b", "a\\b", "a\nb", "a%2Fb", ".", ".."])
def test_a_publisher_that_is_no_piece_of_an_address_is_refused(name: str) -> None:
    with pytest.raises(IllegalRow, match="row 2 has the publisher '.*, which is no piece of an address"):
        check(publishers=[None, name])


def test_a_large_property_is_refused_by_its_name() -> None:
    with pytest.raises(IllegalRow, match="row 3 has a property of 327.. bytes with its name, 'big', and 32768 are"):
        check(properties=[{"a": "b"}, None, {"small": "x", "big": "v" * 32_762}])


def test_many_properties_count_together_and_with_the_key() -> None:
    many: dict[str, str | None] = {str(number): "v" * 1_000 for number in range(64)}
    check(properties=[many])
    check(keys=["k" * 1_000, None], properties=[None, many])
    with pytest.raises(IllegalRow, match="row 2 has 656.. bytes in properties and partitionKey"):
        check(keys=[None, "k" * 1_000], properties=[many, many])
    with pytest.raises(IllegalRow, match="row 2 has 655.. bytes in properties and partitionKey, and 65536 are allowed"):
        check(properties=[many, many | {"65": "v" * 1_000}])
