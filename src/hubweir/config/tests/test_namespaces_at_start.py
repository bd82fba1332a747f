"""Which namespaces are served: all of the data folder, changed by what a start says, and whatever changes is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hubweir.config.namespace_settings import Said, SaidNamespaces, said_namespaces
from hubweir.config.namespaces_at_start import (
    NamespacesAtStart,
    NamespaceSettings,
    hosts_of,
    namespaces_at_start,
    restored_namespace,
)
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE, BadSetting, Settings
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

NOTHING = SaidNamespaces(Said())


def stored(name: str, age: int = 1, *, rank: int = 0, key: str = "kept", **more: Any) -> NamespaceDescription:
    rule = AuthorizationRuleDescription(ROOT_RULE, Rights.ALL, Secret(key), Secret(""))
    return NamespaceDescription(name, (rule,), age, default_rank=rank, **{"profile": "development", **more})


def settled(*at_starts: NamespacesAtStart) -> tuple[NamespaceDescription, ...]:
    """What the data folder has after a start."""
    (start,) = at_starts
    return tuple(
        stored(each.name, number, rank=each.default_rank, key=each.key, hostnames=each.hostnames, profile=each.profile)
        for number, each in enumerate(start.namespaces, start=1)
    )


def plain(namespace: NamespaceDescription) -> object:
    """Its values, with the key in clear: secrets are not compared."""
    keys = tuple((rule.name, rule.primary.reveal()) for rule in namespace.rules)
    return keys, replace(namespace, rules=())


def names(start: NamespacesAtStart) -> list[str]:
    return [each.name for each in start.namespaces]


def test_a_new_folder_gets_what_the_start_says_and_else_the_defaults_and_nothing_is_told() -> None:
    start = namespaces_at_start(NOTHING)
    assert start.namespaces == (
        NamespaceSettings(name="hubweir", is_default=True, default_rank=1, key=DEVELOPMENT_KEY),
    )
    settings = Settings(namespace="mine", key="k", profile="basic", further_namespace=("b", "a"), throughput_units=2)
    start = namespaces_at_start(said_namespaces(settings))
    assert names(start) == ["mine", "b", "a"] and start.notes == ()
    assert [(each.profile, each.key, each.throughput_units) for each in start.namespaces] == [
        ("basic", "k", 2), ("basic", "k", None), ("basic", "k", None),
    ]  # fmt: skip


def test_a_start_that_says_nothing_serves_everything_as_it_was() -> None:
    folder = (
        stored("the-oldest", 1, rank=1, hostnames=("old.example",), profile="basic", key="a"),
        stored("default", 2, rank=2, profile="standard", key="b"),
        stored("a-young-one", 3, hostnames=("young.example",), profile="premium", key="c"),
    )
    start = namespaces_at_start(NOTHING, reversed(folder))
    assert names(start) == ["default", "the-oldest", "a-young-one"]
    assert [each.is_default for each in start.namespaces] == [True, False, False]
    for each in start.namespaces:
        known = next(other for other in folder if other.name == each.name)
        assert each.stored_name == known.name
        assert (each.hostnames, each.profile, each.default_rank) == (known.hostnames, known.profile, known.default_rank)
        assert each.key == known.rules[0].primary.reveal()
        assert (each.throughput_units, each.maximum_throughput_units) == (None, None)
    assert start.notes == ()


def test_the_same_said_twice_tells_nothing_the_second_time() -> None:
    said = said_namespaces(Settings(namespace="a", further_namespace=("b=b.example",), key="k", profile="basic"))
    folder = settled(namespaces_at_start(said))
    again = namespaces_at_start(said, folder)
    assert again.notes == () and names(again) == ["a", "b"]
    for start in (again, namespaces_at_start(NOTHING, folder)):
        assert [plain(each) for each in settled(start)] == [plain(each) for each in folder]


def test_a_name_that_is_not_there_is_added_and_told() -> None:
    folder = (stored("a", rank=1), stored("b", 2))
    start = namespaces_at_start(said_namespaces(Settings(further_namespace=("c",), key="k")), folder)
    assert names(start) == ["a", "b", "c"]
    assert start.namespaces[2].stored_name == ""
    assert "the namespace c is new, by the settings" in start.notes


def test_the_default_namespace_is_the_one_that_is_named_and_stays_it_without_its_name() -> None:
    folder = (stored("a", 1, rank=1), stored("b", 2))
    start = namespaces_at_start(said_namespaces(Settings(namespace="B")), folder)
    assert names(start) == ["B", "a"] and start.namespaces[0].stored_name == "b"
    assert start.notes == ("the default namespace is B now, by the settings; a, which was it, is beside it",)
    assert names(namespaces_at_start(NOTHING, settled(start))) == ["B", "a"]
    # And back: a rank once given is never the highest again by itself.
    back = namespaces_at_start(said_namespaces(Settings(namespace="a")), settled(start))
    assert names(back) == ["a", "B"]
    assert [each.default_rank for each in back.namespaces] == [3, 2]
    assert names(namespaces_at_start(NOTHING, settled(back))) == ["a", "B"]


def test_a_default_namespace_that_is_not_there_is_added_beside_several_and_told() -> None:
    folder = (stored("a", 1, rank=1), stored("b", 2))
    start = namespaces_at_start(said_namespaces(Settings(namespace="c")), folder)
    assert names(start) == ["c", "a", "b"]
    assert start.namespaces[0].stored_name == "" and start.namespaces[0].default_rank == 2
    assert start.notes == ("the default namespace is c, which is new, by the settings; a is served beside it",)


def test_the_only_namespace_of_a_folder_is_renamed_by_the_default_ones_name_and_told() -> None:
    folder = (stored("old", rank=1),)
    start = namespaces_at_start(said_namespaces(Settings(namespace="new", further_namespace=("more",))), folder)
    assert [(each.name, each.stored_name) for each in start.namespaces] == [("new", "old"), ("more", "")]
    assert start.notes[0] == "the namespace old is called new now, by the settings"
    # It keeps its name when the start names it too.
    start = namespaces_at_start(said_namespaces(Settings(namespace="new", further_namespace=("OLD",))), folder)
    assert [(each.name, each.stored_name) for each in start.namespaces] == [("new", ""), ("OLD", "old")]


def test_what_a_start_changes_is_told_with_the_source_and_what_was_before() -> None:
    folder = (
        stored("a", rank=1, profile="basic", hostnames=("a.example",), units=UnitsDescription(5, 8, 2)),
        stored("b", 2, profile="premium"),
    )
    said = Said(profile="standard", hostnames=(), throughput_units=1, maximum_throughput_units=9, key="other")
    places = dict.fromkeys(("profile", "hostnames", "throughput_units", "maximum_throughput_units"), "the flag")
    said = replace(said, places={**places, "key": "Config.json"})
    start = namespaces_at_start(SaidNamespaces(said, notes=("told before",)), folder)
    assert start.notes == (
        "told before",
        "namespace a: its profile became standard, by the flag; before: basic",
        "namespace a: its host names became none, by the flag; before: a.example",
        "namespace a: its throughput units became 1, by the flag; before: 3",
        "namespace a: its maximum became 9, by the flag; before: 8",
        f"namespace a: the primary key of the rule {ROOT_RULE} became that of Config.json; the data folder had "
        "another, which ends with this start",
    )
    assert (start.namespaces[1].profile, start.namespaces[1].key) == ("premium", "kept")


def test_units_that_auto_inflate_added_are_no_disagreement() -> None:
    folder = (stored("a", rank=1, units=UnitsDescription(5, 8, 4)),)
    assert namespaces_at_start(said_namespaces(Settings(throughput_units=1)), folder).notes == ()


def test_profile_and_key_of_the_service_hold_in_namespaces_that_the_start_does_not_name_too() -> None:
    folder = (stored("a", rank=1), stored("b", 2, profile="premium"))
    start = namespaces_at_start(said_namespaces(Settings(key="k", profile="basic")), folder)
    assert [(each.profile, each.key) for each in start.namespaces] == [("basic", "k")] * 2
    assert "namespace b: its profile became basic, by the settings; before: premium" in start.notes


def test_a_host_name_that_is_given_to_another_namespace_leaves_the_one_that_had_it_and_is_told() -> None:
    folder = (stored("a", rank=1, hostnames=("h.example", "a.example")), stored("b", 2))
    start = namespaces_at_start(said_namespaces(Settings(further_namespace=("b=H.example",))), folder)
    assert [each.hostnames for each in start.namespaces] == [("a.example",), ("H.example",)]
    assert any(note.startswith("namespace a: its host names became a.example, by those") for note in start.notes)
    hosts_of(Settings(), start.namespaces)


def test_the_key_of_a_folder_stays_when_no_source_gives_one() -> None:
    assert namespaces_at_start(NOTHING, (stored("a", rank=1, key="kept"),)).namespaces[0].key == "kept"


def test_two_namespaces_of_one_name_are_refused_in_any_case() -> None:
    for said in (Settings(further_namespace=("HUBWEIR",)), Settings(further_namespace=("a", "A"))):
        with pytest.raises(BadSetting, match=f"two namespaces have the name {said.further_namespace[-1]}"):
            namespaces_at_start(said_namespaces(said))
    with pytest.raises(BadSetting, match="two namespaces have the name a"):  # which is the default one already
        namespaces_at_start(said_namespaces(Settings(further_namespace=("a",))), (stored("a", rank=1),))


def test_a_namespace_of_a_backup_is_what_it_was_and_one_that_no_start_named() -> None:
    described = stored("two", hostnames=("two.example",), profile="basic", key="a", units=UnitsDescription(3, 7))
    restored = restored_namespace(described)
    [whole] = namespaces_at_start(NOTHING, (described,)).namespaces
    assert restored == replace(whole, is_default=False, default_rank=0, is_made_running=True)
    assert restored_namespace(replace(described, rules=())).key == "", "its owner removed the rule: it has none again"


def test_a_host_name_of_two_namespaces_is_refused() -> None:
    settings = Settings(hostname=("h.example",), further_namespace=("large=H.example",))
    with pytest.raises(BadSetting, match=r"h\.example leads to the namespace hubweir"):
        hosts_of(settings, namespaces_at_start(said_namespaces(settings)).namespaces)


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
    hosts = hosts_of(settings, namespaces_at_start(said_namespaces(settings)).namespaces)["hubweir"]
    assert ("elsewhere.example" in hosts) is is_open
    assert "127.0.0.9" in hosts
    assert "localhost" in hosts


def test_a_namespace_without_host_names_is_told_of_under_its_own() -> None:
    large, small = namespaces_at_start(
        said_namespaces(Settings(namespace="Large", further_namespace=("Small=small.example",)))
    ).namespaces
    assert (large.host_name, small.host_name) == ("large.localhost", "small.example")


def test_keys_never_show() -> None:
    assert "kept" not in repr(namespaces_at_start(NOTHING, (stored("a", rank=1),)))
