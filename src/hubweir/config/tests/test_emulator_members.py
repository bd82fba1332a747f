"""Names, authorization rules and host names: what several kinds of entity share."""

from typing import Any

import pytest

from hubweir.config.emulator_limits import OFFICIAL_EMULATOR
from hubweir.config.emulator_members import entity_name, official_name
from hubweir.config.tests.emulator_texts import HUB, hubs_file, namespace_of, namespaces_file, problems_of, told
from hubweir.errors import ServiceError
from hubweir.namespace.rights import Rights


def rule(**members: Any) -> dict[str, Any]:
    return {"KeyName": "r", "PrimaryKey": "k", "Rights": ["Send"], **members}


def test_rules_of_namespace_and_hub_are_read_with_keys_and_rights() -> None:
    own = [
        rule(KeyName="all", SecondaryKey="s", Rights=["manage", "SEND", "Listen"]),
        {"KeyName": "l", "Rights": ["Listen"]},
    ]
    namespace = namespace_of(hubs_file({**HUB, "AuthorizationRules": [rule()]}, AuthorizationRules=own))
    everything, listen = namespace.rules
    assert (everything.name, everything.rights, listen.name, listen.rights) == ("all", Rights.ALL, "l", Rights.LISTEN)
    assert everything.primary is not None and everything.primary.reveal() == "k"
    assert everything.secondary is not None and everything.secondary.reveal() == "s"
    assert listen.primary is None and listen.secondary is None
    assert [(found.name, found.rights) for found in namespace.hubs[0].rules] == [("r", Rights.SEND)]
    assert everything.location.path == "$.UserConfig.NamespaceConfig[0].AuthorizationRules[0].KeyName"


def test_a_configuration_can_be_printed_and_compared_without_its_keys() -> None:
    namespace = namespace_of(hubs_file(AuthorizationRules=[rule(PrimaryKey="hunter2")]))
    assert "hunter2" not in repr(namespace)
    assert namespace == namespace_of(hubs_file(AuthorizationRules=[rule(PrimaryKey="other")]))
    assert namespace != namespace_of(hubs_file(AuthorizationRules=[rule(Rights=["Listen"])]))


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([rule(KeyName="")], ("bad value", "[0].KeyName")),
        ([rule(KeyName="tab\t")], ("bad value", "[0].KeyName")),
        ([rule(KeyName=None)], ("missing", "[0].KeyName")),
        ([rule(), rule(KeyName="R")], ("duplicate name", "[1].KeyName")),
        ([rule(PrimaryKey="")], ("bad value", "[0].PrimaryKey")),
        ([rule(SecondaryKey="k" * 257)], ("bad value", "[0].SecondaryKey")),
        ([rule(PrimaryKey=5)], ("wrong type", "[0].PrimaryKey")),
        ([rule(Rights=None)], ("missing", "[0].Rights")),
        ([rule(Rights=[])], ("bad value", "[0].Rights")),
        ([rule(Rights="Send")], ("wrong type", "[0].Rights")),
        ([rule(Rights=["Manage"])], ("bad value", "[0].Rights")),
        ([rule(Rights=["Send", "Receive"])], ("bad value", "[0].Rights[1]")),
        ([rule(Rights=["Send", 1])], ("wrong type", "[0].Rights[1]")),
        ([rule(Claims=1)], ("unknown member", "[0].Claims")),
        ([rule(KeyName=str(number)) for number in range(13)], ("wrong count", "")),
        (["x"], ("wrong type", "[0]")),
        ({}, ("wrong type", "")),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_told(rules: object, problem: tuple[str, str]) -> None:
    kind, path = problem
    assert told(hubs_file(AuthorizationRules=rules)) == [(kind, f"AuthorizationRules{path}")]
    hub_path = f"Entities[0].AuthorizationRules{path}"
    assert told(hubs_file({**HUB, "AuthorizationRules": rules})) == [(kind, hub_path)]


def test_a_key_is_in_no_problem() -> None:
    rules = [
        rule(KeyName="", PrimaryKey="hunter2"),
        rule(PrimaryKey="hunter2" * 50),
        rule(KeyName="R", SecondaryKey=["hunter2"]),
    ]
    problems = problems_of(hubs_file(AuthorizationRules=rules))
    assert len(problems) == 3
    assert not [problem for problem in problems if "hunter2" in str(problem)]


def test_host_names_are_kept_in_lower_case() -> None:
    hosts = ["One.Hubs.Example", "my_container", "127.0.0.1", "a"]
    assert namespace_of(hubs_file(Hostnames=hosts)).hostnames == ("one.hubs.example", "my_container", "127.0.0.1", "a")


@pytest.mark.parametrize(
    "host",
    ["", "a:5671", "https://a", "a b", "-a", "a-", "a..b", ".a", "a.", "é.example", "*.example", "a" * 254, "a\n"],
)
def test_what_is_no_host_name_is_told(host: str) -> None:
    assert told(hubs_file(Hostnames=["good", host])) == [("bad value", "Hostnames[1]")]


def test_a_host_name_leads_to_one_namespace() -> None:
    data = namespaces_file(
        {"Name": "one", "Hostnames": ["a.b", 7], "Entities": []}, {"Name": "two", "Hostnames": ["A.B"], "Entities": []}
    )
    wrong, twice = problems_of(data)
    assert wrong.kind.value == "wrong type"
    assert str(twice.location).endswith("$.UserConfig.NamespaceConfig[1].Hostnames[0]")
    assert twice.found == '"A.B" again; it stands at c.json:1 already'


def test_user_metadata_is_bounded() -> None:
    assert namespace_of(hubs_file({**HUB, "UserMetadata": "x" * 1024})).hubs[0].user_metadata == "x" * 1024
    assert told(hubs_file({**HUB, "UserMetadata": "x" * 1025})) == [("bad value", "Entities[0].UserMetadata")]


@pytest.mark.parametrize("name", ["a", "7", "a.b", "a_b-c/d", "0x" * 100])
def test_names_of_the_official_emulators(name: str) -> None:
    assert official_name(name) == entity_name(260)(name) == name


@pytest.mark.parametrize("name", ["", "$default", "-a", "a-", "a b", "é", "aé", "a\n", "."])
def test_names_that_no_emulator_takes(name: str) -> None:
    for check in (official_name, entity_name(260)):
        with pytest.raises(ServiceError):
            check(name)


def test_a_tilde_is_taken_but_not_by_the_official_emulator() -> None:
    assert entity_name(3)("a~b") == "a~b"
    with pytest.raises(ServiceError):
        entity_name(2)("a~b")
    data = hubs_file({**HUB, "Name": "a~b"})
    assert namespace_of(data).hubs[0].name == "a~b"
    assert told(data, limits=OFFICIAL_EMULATOR) == [("bad value", "Entities[0].Name")]
