"""docs/emulator_config.md: its files load, its messages are the real ones, its tables name every member."""

import re
from pathlib import Path

import pytest

from hubweir.config.problems import EmulatorFileError
from hubweir.config.tests.emulator_texts import parse_emulator_file

PAGE = (Path(__file__).resolve().parents[4] / "docs/emulator_config.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def known_members(data: bytes) -> set[str]:
    """Return what a strict reader says may stand where an unknown member stands in data."""
    with pytest.raises(EmulatorFileError) as caught:
        parse_emulator_file(data, file="Config.json", strict=True)
    [problem] = [problem for problem in caught.value.problems if problem.location.path.endswith(".unknown")]
    return set(problem.allowed.split(", "))


def test_the_files_of_the_page_load_without_a_warning() -> None:
    assert len(blocks("json")) == 2
    for text in blocks("json"):
        config = parse_emulator_file(text.encode(), file="Config.json", strict=True)
        assert config.warnings == ()


def test_the_messages_of_the_page_are_those_of_its_wrong_file() -> None:
    [wrong], [answer] = blocks("json wrong"), blocks("text")
    with pytest.raises(EmulatorFileError) as caught:
        parse_emulator_file(wrong.encode(), file="Config.json")
    assert f"{caught.value}\n" == answer


@pytest.mark.parametrize(
    ("title", "files"),
    [
        ("Members of UserConfig", [b'{"UserConfig": {"unknown": 1}}']),
        (
            "A namespace",
            [
                b'{"UserConfig": {"NamespaceConfig": [{"unknown": 1, "Entities": []}]}}',
                b'{"UserConfig": {"Namespaces": [{"unknown": 1}]}}',
            ],
        ),
        ("An event hub", [b'{"UserConfig": {"NamespaceConfig": [{"Entities": [{"unknown": 1}]}]}}']),
        (
            "A queue, a topic, a subscription",
            [
                b'{"UserConfig": {"Namespaces": [{"Queues": [{"Properties": {"unknown": 1}}]}]}}',
                b'{"UserConfig": {"Namespaces": [{"Topics": [{"Properties": {"unknown": 1}}]}]}}',
                b'{"UserConfig": {"Namespaces": [{"Topics": [{"Subscriptions": [{"Properties": {"unknown": 1}}]}]}]}}',
            ],
        ),
    ],
)
def test_the_tables_of_the_page_name_every_member_and_no_other(title: str, files: list[bytes]) -> None:
    first_cells = re.findall(r"^\| (`[^|]*)\|", section(title), re.MULTILINE)
    shown = set(re.findall(r"`(\w+)`", " ".join(first_cells)))
    assert shown == set.union(*map(known_members, files))
