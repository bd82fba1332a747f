"""The table of limits: the official emulators never take what the service does not."""

import dataclasses

import pytest

from hubweir.config.emulator_limits import OFFICIAL_EMULATOR, SERVICE, file_limits


@pytest.mark.parametrize("name", [line.name for line in dataclasses.fields(SERVICE) if line.name != "official"])
def test_the_official_emulators_are_within_the_service(name: str) -> None:
    official, service = getattr(OFFICIAL_EMULATOR, name), getattr(SERVICE, name)
    assert official >= service if "_min" in name else official <= service


def test_the_official_bounds_are_those_of_its_schema() -> None:
    assert dataclasses.asdict(OFFICIAL_EMULATOR) == {
        **dataclasses.asdict(SERVICE),
        "official": True,
        "namespaces_limit": 1,
        "hubs_min": 1,
        "hubs_limit": 10,
        "partitions_limit": 32,
        "consumer_groups_limit": 20,
        "entities_limit": 50,
        "subscriptions_min": 1,
        "subscriptions_limit": 50,
        "rules_limit": 1000,
        "time_to_live_min_ms": 300_000,
        "time_to_live_limit_ms": 3_600_000,
        "duplicate_window_limit_ms": 300_000,
        "delivery_count_limit": 10,
    }


def test_a_profile_and_the_flag_for_more_partitions_choose_the_limits() -> None:
    assert file_limits("development") is file_limits("standard") is SERVICE
    assert file_limits("official-emulator") is OFFICIAL_EMULATOR
    for profile, base in (("basic", SERVICE), ("official-emulator", OFFICIAL_EMULATOR)):
        assert file_limits(profile, allow_more_partitions=True) == dataclasses.replace(base, partitions_limit=1_024)
