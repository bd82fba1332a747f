"""What a start says of namespaces: settings over files, a file's own key over the setting; sources that disagree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE, BadSetting, Settings
from hubweir.config.tests.emulator_texts import parse_emulator_file

RIGHTS = ["Manage", "Send", "Listen"]


def files(*items: dict[str, Any]) -> tuple[NamespaceConfig, ...]:
    document = {"UserConfig": {"NamespaceConfig": [{"Entities": [], **item} for item in items]}}
    return parse_emulator_file(json.dumps(document).encode(), file="Config.json").namespaces


def root_rule(**keys: str) -> dict[str, Any]:
    return {"AuthorizationRules": [{"KeyName": ROOT_RULE, "Rights": RIGHTS, **keys}]}


def test_settings_say_what_was_given_and_nothing_else() -> None:
    default = said_namespaces(Settings(namespace="mine", throughput_units=2)).default
    assert (default.name, default.throughput_units, default.places["name"]) == ("mine", 2, "the settings")
    assert (default.hostnames, default.profile, default.key, default.maximum_throughput_units) == (None,) * 4
    settings = Settings(hostname=("h.example",), profile="basic", key="k", maximum_throughput_units=4)
    default = said_namespaces(settings).default
    assert (default.name, default.throughput_units, default.maximum_throughput_units) == (None, None, 4)
    assert (default.hostnames, default.profile, default.key) == (("h.example",), "basic", "k")
    # A default that was given by its flag is said all the same.
    flag = {"throughput_units": "the flag --throughput-units"}
    default = said_namespaces(Settings(), sources=flag).default
    assert (default.throughput_units, default.name, default.places) == (0, None, flag)


def test_settings_win_over_the_first_item_of_a_file_which_wins_over_nothing_that_was_given() -> None:
    item = {"Name": "of-file", "Sku": "Standard", "ThroughputUnits": 3, "Hostnames": ["hub.example"]}
    said = said_namespaces(Settings(throughput_units=5), files(item)).default
    assert (said.name, said.profile, said.throughput_units, said.hostnames) == (
        "of-file", "standard", 5, ("hub.example",),
    )  # fmt: skip
    assert (said.places["name"], said.places["throughput_units"]) == ("Config.json", "the settings")
    assert said.entities is not None and said.entities.name == "of-file"
    assert said_namespaces(Settings(profile="premium"), files(item)).default.profile == "premium"


def test_further_namespaces_of_a_file_say_what_it_says_and_else_what_the_service_has() -> None:
    found = files(
        {"Name": "first"},
        {
            "Name": "large",
            "Sku": "Premium",
            "Hostnames": ["large.example"],
            "ThroughputUnits": 2,
            "MaximumThroughputUnits": 4,
            **root_rule(PrimaryKey="its own"),
        },
        {"Name": "third", "MaximumThroughputUnits": 4, "IsAutoInflateEnabled": False},
    )
    large, third = said_namespaces(Settings(namespace="mine", profile="standard", key="k"), found).further
    assert (large.name, large.profile, large.hostnames, large.key) == (
        "large",
        "premium",
        ("large.example",),
        "its own",
    )
    assert (large.throughput_units, large.maximum_throughput_units) == (2, 4)
    assert (third.profile, third.maximum_throughput_units, third.key) == ("standard", 0, "k")
    assert (third.hostnames, third.throughput_units) == (None, None)


def test_further_namespaces_of_flags_have_names_and_hosts() -> None:
    settings = Settings(further_namespace=("large=large.example+eu.example", "small"), key="k", profile="basic")
    large, small = said_namespaces(settings).further
    assert (large.name, large.hostnames) == ("large", ("large.example", "eu.example"))
    assert (small.name, small.hostnames, small.profile, small.key) == ("small", None, "basic", "k")


def test_the_key_of_a_file_holds_in_every_namespace_and_a_setting_that_disagrees_is_told_by_name() -> None:
    found = files({"Name": "one", **root_rule(PrimaryKey="first")}, {"Name": "two", **root_rule(PrimaryKey="second")})
    said = said_namespaces(Settings(), found)
    assert (said.default.key, said.further[0].key, said.notes) == ("first", "second", ())
    said = said_namespaces(Settings(key="second"), found, sources={"key": "the flag --key"})
    assert (said.default.key, said.further[0].key, said.others.key) == ("first", "second", "second")
    (note,) = said.notes
    assert note.startswith(f"namespace one: Config.json and the flag --key give the rule {ROOT_RULE} different")
    assert "first" not in note and "second" not in note


def test_a_root_rule_without_a_key_says_nothing_of_it() -> None:
    found = files({"Name": "one", **root_rule(SecondaryKey="other")})
    assert said_namespaces(Settings(), found).default.key is None
    assert said_namespaces(Settings(key="k"), found).default.key == "k"


@pytest.mark.parametrize("text", ["large=", "large=a+", "=host.example", "no name", "-x"])
def test_what_is_no_further_namespace_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        said_namespaces(Settings(further_namespace=(text,)))


def test_a_name_that_is_not_legal_is_refused() -> None:
    with pytest.raises(BadSetting, match="not legal"):
        said_namespaces(Settings(namespace="no name"))


def test_keys_never_show() -> None:
    assert "geheim" not in repr(said_namespaces(Settings(key="geheim")))
    assert DEVELOPMENT_KEY not in repr(said_namespaces(Settings()))
