"""What the operator of a queue may set, at its limits, under each profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, NOT_FOUND, RESOURCE_LIMIT, Condition, ServiceError
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Entity, EntityStatus
from hubweir.namespace.forward_address import forward_name, forward_uri
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.messaging_tier import MESSAGING_TIERS
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.tiers import PROFILES

CONTEXT = ChangeContext(PROFILES["standard"], "ns.local", 32, "", 0, takes_messages=lambda name: name == "there")


def check(queue: QueueDescription, profile: str = "standard") -> QueueDescription:
    return queue.checked((), replace(CONTEXT, profile=PROFILES[profile]))


def delivery(**settings: object) -> QueueDescription:
    return QueueDescription("q", DeliverySettings(**settings))  # type: ignore[arg-type]


def storage(**settings: object) -> QueueDescription:
    return QueueDescription("q", storage=StorageSettings(**settings))  # type: ignore[arg-type]


def refusal(queue: QueueDescription, profile: str = "standard") -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        check(queue, profile)
    return refused.value


@pytest.mark.parametrize(
    "queue",
    [
        QueueDescription("txt/.-_123"),
        delivery(lock_duration=written_duration("PT5S")),
        delivery(lock_duration=written_duration("PT5M")),
        delivery(max_delivery_count=1),
        delivery(max_delivery_count=2_000),
        delivery(forward_to="sb://HOST:5671/there", requires_session=True),
        storage(max_size_megabytes=5_120),
        storage(duplicate_window=written_duration("PT20S")),
        storage(duplicate_window=written_duration("P7D")),
        storage(is_partitioned=True, is_express=True),
        QueueDescription(
            "q", default_time_to_live=written_duration("PT1S"), auto_delete_on_idle=written_duration("PT5M")
        ),
        QueueDescription("q", user_metadata="x" * 1_024),
    ],
)
def test_values_at_the_limits_are_legal_and_kept_as_they_came(queue: QueueDescription) -> None:
    assert check(queue) == queue


@pytest.mark.parametrize(
    ("queue", "needle"),
    [
        (QueueDescription("q/"), "queue name"),
        (QueueDescription("q" * 261), "1 to 260"),
        (delivery(lock_duration=written_duration("PT4.999S")), "LockDuration is PT4.999S; PT5S to PT5M"),
        (delivery(lock_duration=written_duration("PT5M0.001S")), "LockDuration"),
        (delivery(max_delivery_count=0), "MaxDeliveryCount is 0; 1 to 2000"),
        (delivery(max_delivery_count=2_001), "MaxDeliveryCount is 2001"),
        (storage(max_size_megabytes=1_000), "MaxSizeInMegabytes is 1000; 1024, 2048"),
        (storage(max_size_megabytes=10_240), "MaxSizeInMegabytes is 10240"),
        (
            storage(duplicate_window=written_duration("PT19.9S")),
            "DuplicateDetectionHistoryTimeWindow is PT19.9S; PT20S to",
        ),
        (storage(duplicate_window=written_duration("P7DT1S")), "DuplicateDetectionHistoryTimeWindow"),
        (storage(max_message_kilobytes=1_024), "MaxMessageSizeInKilobytes is 256 and cannot be set"),
        (QueueDescription("q", default_time_to_live=written_duration("PT0.9S")), "DefaultMessageTimeToLive is PT0.9S"),
        (
            QueueDescription("q", auto_delete_on_idle=written_duration("PT4M59S")),
            "AutoDeleteOnIdle is PT4M59S; PT5M to",
        ),
        (QueueDescription("q", user_metadata="x" * 1_025), "the user metadata has 1025"),
    ],
)
def test_values_over_the_limits_are_refused_with_the_setting_and_its_range(
    queue: QueueDescription, needle: str
) -> None:
    refused = refusal(queue)
    assert refused.condition is ARGUMENT_OUT_OF_RANGE and needle in refused.text


@pytest.mark.parametrize(
    ("asked", "kept", "told"), [(4_096, 4_096, 65_536), (65_536, 4_096, 65_536), (16_384, 1_024, 16_384)]
)
def test_a_partitioned_queue_tells_its_whole_size_and_takes_that_back(asked: int, kept: int, told: int) -> None:
    made = check(storage(max_size_megabytes=asked, is_partitioned=True))
    assert made.storage.max_size_megabytes == kept
    assert made.storage.size_in_megabytes(MESSAGING_TIERS["standard"]) == told
    assert made.storage.size_in_megabytes(MESSAGING_TIERS["premium"]) == kept


@pytest.mark.parametrize(("profile", "allowed"), [("standard", 100), ("basic", 100), ("premium", None)])
def test_only_tiers_where_partitioning_is_a_choice_have_a_quota_of_it(profile: str, allowed: int | None) -> None:
    tier = MESSAGING_TIERS[profile]
    tier.check_partitioned_count(allowed or 1_000)
    if allowed is not None:
        with pytest.raises(ServiceError, match="the quota of profile") as refused:
            tier.check_partitioned_count(allowed + 1)
        assert refused.value.condition is RESOURCE_LIMIT


@pytest.mark.parametrize(
    ("profile", "count"), [("standard", 16), ("basic", 16), ("development", 16), ("official-emulator", 16),
                           ("premium", 2)],
)  # fmt: skip
def test_a_partitioned_queue_has_the_fragments_of_its_tier(profile: str, count: int) -> None:
    queue = check(storage(is_partitioned=True), profile)
    assert queue.log_count(PROFILES[profile]) == count
    plain = check(QueueDescription("q"), profile)
    assert plain.storage.is_partitioned == (profile == "premium"), "there it cannot be turned off"
    assert plain.log_count(PROFILES[profile]) == (2 if profile == "premium" else 1)


def test_a_size_of_fragments_is_no_size_of_a_queue_that_has_none() -> None:
    assert "MaxSizeInMegabytes is 65536" in refusal(storage(max_size_megabytes=65_536)).text
    assert check(storage(max_size_megabytes=81_920), "premium").storage.max_size_megabytes == 81_920


@pytest.mark.parametrize(
    ("profile", "asked", "told"), [("standard", 256, 256), ("standard", 0, 256), ("premium", 0, 1_024),
                                   ("premium", 102_400, 102_400), ("development", 2, 2)],
)  # fmt: skip
def test_the_largest_message_is_the_tier_s_or_what_was_asked_for(profile: str, asked: int, told: int) -> None:
    made = check(storage(max_message_kilobytes=asked), profile)
    assert made.storage.message_kilobytes(MESSAGING_TIERS[profile]) == told


@pytest.mark.parametrize("asked", [1_023, 102_401])
def test_a_premium_queue_s_largest_message_has_its_range(asked: int) -> None:
    assert "1024 to 102400 are allowed" in refusal(storage(max_message_kilobytes=asked), "premium").text


@pytest.mark.parametrize(
    ("profile", "queue", "condition"),
    [
        ("premium", storage(is_express=True), ARGUMENT_ERROR),
        ("basic", delivery(requires_session=True), RESOURCE_LIMIT),
        ("basic", delivery(forward_to="there"), RESOURCE_LIMIT),
        ("basic", storage(requires_duplicate_detection=True), RESOURCE_LIMIT),
        ("standard", delivery(forward_to="sb://h/missing"), NOT_FOUND),
        ("standard", delivery(forward_dead_letters_to="missing"), NOT_FOUND),
        ("standard", delivery(forward_to="ftp://h/there"), ARGUMENT_ERROR),
    ],
)
def test_what_a_tier_or_a_destination_does_not_allow_is_refused(
    profile: str, queue: QueueDescription, condition: Condition
) -> None:
    assert refusal(queue, profile).condition is condition


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sb://host:5671/q2", "q2"),
        ("https://HOST/a/b", "a/b"),
        ("q2", "q2"),
        ("/q2/", "q2"),
        ("amqp://h/a%20b", "a b"),
    ],
)
def test_a_destination_is_read_out_of_every_form(text: str, name: str) -> None:
    assert forward_name(text) == name


@pytest.mark.parametrize("text", ["sb://h", "", "sb://h/a?b", "x" * 2_000])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match="is no address of a queue or topic"):
        forward_name(text)


def test_a_destination_comes_back_as_it_came_and_a_bare_name_with_the_host() -> None:
    assert forward_uri("https://HOST/q2", "ns.local") == "https://HOST/q2"
    assert forward_uri("Q2", "ns.local") == "sb://ns.local/Q2"
    assert forward_uri("", "ns.local") == ""


def made(queue: QueueDescription) -> Entity[QueueDescription]:
    return Entity("id", queue, (), EntityStatus.ACTIVE)


@pytest.mark.parametrize(
    ("allowed", "queue"),
    [(100, lambda name: QueueDescription(name, storage=StorageSettings(is_partitioned=True))),
     (10_000, lambda name: QueueDescription(name))],
)  # fmt: skip
def test_the_quotas_of_the_standard_tier_hold(allowed: int, queue: Callable[[str], QueueDescription]) -> None:
    others = [made(queue(f"q{number}")) for number in range(allowed)]
    assert queue("one").checked(others[1:], CONTEXT)
    with pytest.raises(ServiceError) as refused:
        queue("one").checked(others, CONTEXT)
    assert refused.value.condition is RESOURCE_LIMIT and f"is {allowed}" in refused.value.text
    assert queue("one").checked(others, replace(CONTEXT, profile=PROFILES["development"]))
