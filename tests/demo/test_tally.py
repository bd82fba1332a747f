import json

import pytest

from demo.tally import Tally, differences

EVENTS = [("N1", 5), ("N2", None), ("N1", -3), (None, 7), (None, 11)]


def body(key: str | None, place: int, delay: int | None) -> bytes:
    return json.dumps({"place": place, "carrier": "UA", "tailnum": key, "dep_delay": delay}).encode()


def tally(order: list[int]) -> Tally:
    """A tally of EVENTS in this order of places."""
    seen = Tally()
    for place in order:
        key, delay = EVENTS[place]
        seen.add(key, body(key, place, delay))
    return seen


EXPECTED = tally([0, 1, 2, 3, 4])


def test_order_matters_within_a_key_and_nowhere_else() -> None:
    assert differences(EXPECTED, tally([1, 4, 0, 3, 2])) == []


def test_mean_leaves_out_flights_that_never_left() -> None:
    assert EXPECTED.mean_delays() == {"UA": (5 - 3 + 7 + 11) / 4}


@pytest.mark.parametrize(
    ("order", "finding"),
    [
        pytest.param([0, 1, 2, 3], "5 events were published, 4 were read", id="one lost"),
        pytest.param([0, 1, 2, 3, 4, 4], "6 were read", id="one twice"),
        pytest.param([2, 1, 0, 3, 4], "order or content differs for 1 keys, first N1", id="one key out of order"),
        pytest.param([0, 2, 3, 4], "2 keys were published, 1 were read", id="a key lost"),
        pytest.param([0, 1, 2, 3, 3], "events without a key differ", id="one unkeyed for another"),
    ],
)
def test_every_planted_difference_is_found(order: list[int], finding: str) -> None:
    assert any(finding in one for one in differences(EXPECTED, tally(order)))
