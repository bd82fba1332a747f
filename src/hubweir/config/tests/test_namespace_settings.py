"""Which namespaces a service is to have, by settings and files, and which hosts lead to each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.emulator_file import parse_emulator_file
from hubweir.config.namespace_settings import NamespaceSettings, hosts_of, namespaces_of
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE, BadSetting, Settings


def files(*items: dict[str, Any]) -> tuple[NamespaceConfig, ...]:
    document = {"UserConfig": {"NamespaceConfig": [{"Entities": [], **item} for item in items]}}
    return parse_emulator_file(json.dumps(document).encode(), file="Config.json").namespaces


def test_settings_alone_make_one_namespace() -> None:
    (only,) = namespaces_of(Settings(namespace="mine", key="k", throughput_units=2, profile="basic"))
    assert only == NamespaceSettings(name="mine", key="k", throughput_units=2, profile="basic")


def test_further_namespaces_of_a_file_have_what_it_says_and_else_what_the_service_has() -> None:
    found = files(
        {"Name": "first"},
        {
            "Name": "large",
            "Sku": "Premium",
            "Hostnames": ["large.example"],
            "ThroughputUnits": 2,
            "MaximumThroughputUnits": 4,
            "AuthorizationRules": [
                {"KeyName": ROOT_RULE, "PrimaryKey": "its own", "Rights": ["Manage", "Send", "Listen"]}
            ],
        },
        {"Name": "third", "MaximumThroughputUnits": 4, "IsAutoInflateEnabled": False},
    )
    settings = Settings(namespace="first", profile="standard", key="k")
    first, large, third = namespaces_of(settings, found, profile="development")
    assert (first.name, first.profile, first.entities) == ("first", "standard", found[0])
    assert (large.profile, large.hostnames, large.host_name) == ("premium", ("large.example",), "large.example")
    assert (large.throughput_units, large.maximum_throughput_units, large.key) == (2, 4, "its own")
    assert (third.profile, third.maximum_throughput_units, third.key) == ("development", 0, "k")
    assert third.host_name == "third.localhost"


def test_further_namespaces_of_flags_have_names_and_hosts() -> None:
    settings = Settings(further_namespace=("large=large.example+eu.example", "small"), key="k", profile="basic")
    _, large, small = namespaces_of(settings)
    assert (large.name, large.hostnames) == ("large", ("large.example", "eu.example"))
    assert (small.name, small.hostnames, small.profile, small.key) == ("small", (), "basic", "k")


@pytest.mark.parametrize("text", ["large=", "large=a+", "=host.example", "no name", "-x"])
def test_what_is_no_further_namespace_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        namespaces_of(Settings(further_namespace=(text,)))


def test_two_namespaces_of_one_name_are_refused_in_any_case() -> None:
    with pytest.raises(BadSetting, match="two namespaces have the name HUBWEIR"):
        namespaces_of(Settings(further_namespace=("HUBWEIR",)))
    with pytest.raises(BadSetting, match="two namespaces have the name two"):
        namespaces_of(Settings(namespace="TWO"), files({"Name": "one"}, {"Name": "two"}))


def test_a_host_name_of_two_namespaces_is_refused() -> None:
    settings = Settings(hostname=("h.example",), further_namespace=("large=H.example",))
    with pytest.raises(BadSetting, match=r"h\.example leads to the namespace hubweir"):
        hosts_of(settings, namespaces_of(settings))


@pytest.mark.parametrize(
    ("profile", "hostname", "is_open"),
    [
        ("development", ("h.example",), True),
        ("official-emulator", ("h.example",), True),
        ("standard", ("h.example",), False),
        ("standard", (), True),
    ],
)
def test_a_namespace_of_a_tier_with_host_names_takes_no_other(
    profile: str, hostname: tuple[str, ...], is_open: bool
) -> None:
    settings = Settings(profile=profile, hostname=hostname, host=("127.0.0.9",))
    hosts = hosts_of(settings, namespaces_of(settings))["hubweir"]
    assert ("elsewhere.example" in hosts) is is_open
    assert "127.0.0.9" in hosts
    assert "localhost" in hosts


def test_keys_never_show() -> None:
    assert DEVELOPMENT_KEY not in repr(namespaces_of(Settings()))
