"""messaging_commands.py: the group of commands of one kind of entity; at a live namespace in test_queue.py."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from hubweir.cli.messaging_commands import check_changes, entity_group
from hubweir.cli.messaging_options import QUEUE, TOPIC, EntityOption
from hubweir.cli.tests.typed_commands import Typed
from hubweir.client.atom_documents import EntityType

KINDS = [("queue", EntityType.QUEUE, QUEUE), ("topic", EntityType.TOPIC, TOPIC)]


@pytest.mark.parametrize(("noun", "kind", "members"), KINDS, ids=["queue", "topic"])
def test_each_group_has_the_same_commands_in_its_own_words(
    noun: str, kind: EntityType, members: tuple[EntityOption, ...]
) -> None:
    group = entity_group(noun, kind, members)
    assert list(group.commands) == ["create", "list", "show", "update", "delete", "authorization-rule"]
    for name, command in group.commands.items():
        told = CliRunner().invoke(command, ["--help"])
        assert told.exit_code == 0
        assert noun in told.output.lower(), name
        assert ("--user-metadata" in told.output) == (name in ("create", "update"))


def test_an_update_without_a_change_is_a_mistake_and_an_empty_text_is_a_change() -> None:
    with pytest.raises(click.UsageError, match="give at least one option of a setting"):
        check_changes({})
    check_changes({"UserMetadata": ""})


def test_an_update_leaves_what_is_not_given_as_it_was(type_command: Typed) -> None:
    assert type_command("queue", "create", "kept", "--lock-duration", "30s", "--max-delivery", "4").exit_code == 0
    assert type_command("queue", "update", "kept", "--user-metadata", "mine").output == "changed queue kept\n"
    shown = type_command("queue", "show", "KEPT").output
    assert [text in shown for text in ("PT30S", "mine")] == [True, True]
    assert type_command("queue", "delete", "kept", stdin="y\n").output.endswith("deleted queue kept\n")
