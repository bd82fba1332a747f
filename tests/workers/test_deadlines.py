"""The profile of conftest.py holds in whatever process runs tests."""

from hypothesis import settings


def test_no_property_is_timed() -> None:
    assert settings().deadline is None
    assert settings(max_examples=2).deadline is None
