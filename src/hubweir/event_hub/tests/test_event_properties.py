from __future__ import annotations

from hubweir.errors import ARGUMENT_ERROR
from hubweir.event_hub.event_properties import properties_too_large


def test_the_refusal_names_the_hub_both_limits_and_the_way_out() -> None:
    error = properties_too_large("orders")
    assert error.condition is ARGUMENT_ERROR and not error.condition.retriable
    for part in ("'orders'", "32768", "65536", "body"):
        assert part in error.text
