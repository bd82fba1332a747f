"""The table of quotas."""

import pytest

from hubweir.errors import RESOURCE_LIMIT, ServiceError
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.event_hub_description import RETENTION_LIMIT_MS
from hubweir.namespace.tiers import DAY_MS, DEVELOPMENT, HOUR_MS, PROFILES


def test_development_has_no_quota_but_the_message_size() -> None:
    DEVELOPMENT.check_hub_count(10**6)
    DEVELOPMENT.check_group_count("h", 10**6)
    DEVELOPMENT.check_retention("h", RETENTION_LIMIT_MS)
    assert DEVELOPMENT.message_size_bytes == 1_048_576
    assert PROFILES["basic"].message_size_bytes == 262_144


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"development"}))
def test_every_other_profile_allows_its_quota_and_not_one_more(name: str) -> None:
    profile = PROFILES[name]
    assert profile.name == name
    assert profile.event_hubs is not None and profile.consumer_groups is not None and profile.retention_ms is not None
    profile.check_hub_count(profile.event_hubs)
    profile.check_group_count("h", profile.consumer_groups)
    profile.check_retention("h", profile.retention_ms)
    for over in (
        lambda: profile.check_hub_count(profile.event_hubs + 1),
        lambda: profile.check_group_count("h", profile.consumer_groups + 1),
        lambda: profile.check_retention("h", profile.retention_ms + 1),
    ):
        with pytest.raises(ServiceError) as refused:
            over()
        assert refused.value.condition is RESOURCE_LIMIT
        assert f"profile '{name}'" in refused.value.text


def test_retention_of_the_paid_tiers_is_as_published() -> None:
    assert [PROFILES[name].retention_ms for name in ("basic", "standard", "premium")] == [
        DAY_MS,
        7 * DAY_MS,
        90 * DAY_MS,
    ]


def test_capture_is_sold_from_the_standard_tier_on() -> None:
    on, off = CaptureDescription(enabled=True), CaptureDescription()
    for name in ("development", "standard", "premium"):
        PROFILES[name].check_capture("h", on)
    for name in ("basic", "official-emulator"):
        PROFILES[name].check_capture("h", off)
        PROFILES[name].check_capture("h", None)
        with pytest.raises(ServiceError, match="no capture"):
            PROFILES[name].check_capture("h", on)


def test_a_refusal_names_the_hub_both_figures_and_what_to_do() -> None:
    basic = PROFILES["basic"]
    for over, text in (
        (
            lambda: basic.check_hub_count(11),
            "The namespace would have 11 event hubs; the quota of profile 'basic' is 10.",
        ),
        (
            lambda: basic.check_group_count("h", 2),
            "Event hub 'h' would have 2 consumer groups, $Default included; the quota of profile 'basic' is 1.",
        ),
        (
            lambda: basic.check_retention("h", 2 * DAY_MS),
            "Event hub 'h' would keep events for 2 days; the quota of profile 'basic' is 1 day.",
        ),
        (lambda: basic.check_retention("h", 25 * HOUR_MS), "for 25 hours; "),
        (lambda: basic.check_retention("h", DAY_MS + 1), "for 86400001 ms; "),
    ):
        with pytest.raises(ServiceError) as refused:
            over()
        assert text in refused.value.text
        assert refused.value.text.endswith("under another profile (serve --profile, Sku in a Config.json).")
