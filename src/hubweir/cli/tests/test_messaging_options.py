"""messaging_options.py: settings as they are typed become elements of a description, and their texts."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from hubweir.cli.messaging_options import (
    QUEUE,
    SUBSCRIPTION,
    TOPIC,
    EntityOption,
    LengthOfTime,
    TrueOrFalse,
    takes_members,
)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("30s", "PT30S"), ("90s", "PT90S"), ("5m", "PT5M"), ("1500ms", "PT1.5S"), ("2h", "PT2H"), ("14d", "P14D"),
        ("PT90S", "PT90S"), ("P10675199DT2H48M5.4775807S", "P10675199DT2H48M5.4775807S"), (" PT1M ", "PT1M"),
    ],
)  # fmt: skip
def test_a_length_of_time_is_told_as_it_is_or_made_into_one(typed: str, told: str) -> None:
    assert LengthOfTime().convert(typed, None, None) == told


@pytest.mark.parametrize("typed", ["", "soon", "30", "s", "-30s", "PT", "1.5h", "30 s"])
def test_what_is_no_length_of_time_is_refused_with_what_is_one(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="is no length of time such as 30s or PT30S"):
        LengthOfTime().convert(typed, None, None)


def test_a_flag_is_true_or_false_in_every_word_for_it() -> None:
    assert [TrueOrFalse().convert(word, None, None) for word in ("true", "YES", "1", "on")] == ["true"] * 4
    assert [TrueOrFalse().convert(word, None, None) for word in ("false", "No", "0", "off")] == ["false"] * 4
    with pytest.raises(click.BadParameter):
        TrueOrFalse().convert("perhaps", None, None)


@pytest.mark.parametrize("members", [QUEUE, TOPIC, SUBSCRIPTION], ids=["queue", "topic", "subscription"])
def test_no_two_options_of_an_entity_share_a_flag_or_an_element(members: tuple[EntityOption, ...]) -> None:
    flags = [flag for each in members for flag in each.flags]
    assert len(set(flags)) == len(flags)
    assert len({each.element for each in members}) == len(members)


def typed(*arguments: str) -> tuple[int, object]:
    """What a command with the options of a queue, and one of its own, is called with; its exit code."""
    called: list[object] = []

    @click.command()
    @click.argument("name")
    @takes_members(QUEUE)
    def command(name: str, members: dict[str, str]) -> None:
        """Its own help."""
        called.append((name, members))

    assert command.help == "Its own help."
    done = CliRunner().invoke(command, arguments)
    return done.exit_code, called[0] if called else done.output


def test_a_command_gets_the_elements_that_were_given_and_no_others() -> None:
    assert typed("q") == (0, ("q", {}))
    given = ("--lock-duration", "30s", "--max-delivery", "7", "--enable-session", "no", "--status", "disabled")
    told = {"LockDuration": "PT30S", "MaxDeliveryCount": "7", "RequiresSession": "false", "Status": "Disabled"}
    assert typed("q", *given, "--user-metadata", "") == (0, ("q", {**told, "UserMetadata": ""}))
    code, output = typed("q", "--max-size", "-1")
    assert code == 2
    assert "--max-size" in str(output)
