"""The names that have a meaning."""

from hubweir.amqp.messaging import annotations


def test_the_three_descriptors_of_the_position_filter_are_known() -> None:
    assert annotations.SELECTOR_FILTER_DESCRIPTORS == (
        "apache.org:selector-filter:string",
        0x0000468C00000004,
        0x000000137000000A,
    )
