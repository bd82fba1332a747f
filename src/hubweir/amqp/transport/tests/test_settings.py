from __future__ import annotations

from dataclasses import fields

from hubweir.amqp.transport.settings import EndpointSettings


def test_the_defaults_are_what_the_service_offers_and_our_safety_limits() -> None:
    settings = EndpointSettings("name")
    assert (settings.limits.max_frame_size_bytes, settings.channel_max, settings.handle_max) == (65_536, 4_999, 255)
    assert (settings.limits.idle_timeout_ms, settings.incoming_window) == (240_000, 5_000)
    assert (settings.open_frame_limit, settings.max_name_bytes, settings.max_unsettled) == (8_192, 256, 5_000)
    assert settings.buffered_before_auth_bytes == 64 * 1024


def test_every_duration_and_size_says_its_unit_or_is_a_field_of_open_or_begin() -> None:
    plain = {
        *("container_id", "hostname", "limits", "channel_max", "handle_max", "incoming_window", "sasl"),
        *("sasl_may_be_left_out", "sasl_mechanism", "sasl_response"),
        *("open_frame_limit", "max_unsettled"),
    }
    for field in fields(EndpointSettings):
        assert field.name in plain or field.name.endswith(("_ms", "_bytes"))
