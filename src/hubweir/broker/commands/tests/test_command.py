"""The classes of the seam between gateway and broker: declared once, and values that nobody changes on the way."""

from __future__ import annotations

import typing
from contextlib import suppress

import pytest
from msgspec import Struct

from hubweir.broker import wire  # which imports every page
from hubweir.broker.commands.command import (
    DECLARED,
    Answer,
    Command,
    Cost,
    KeeperCommand,
    LogCommand,
    OwnedCommand,
    Owner,
    Push,
    answer,
    command,
    push,
)
from hubweir.broker.commands.process import CloseOwner, Done, Refusal
from hubweir.errors import NOT_FOUND, TIMED_OUT

CLASSES = list(DECLARED.values())
COMMANDS = [made for made in CLASSES if issubclass(made, Command)]


@pytest.mark.parametrize("made", CLASSES, ids=lambda made: made.__name__)
def test_every_class_is_a_frozen_value_without_room_for_more(made: type) -> None:
    assert issubclass(made, Struct)
    assert made.__struct_config__.frozen
    assert not made.__dictoffset__


def test_every_class_is_a_command_an_answer_or_a_push_and_only_one_of_them() -> None:
    kinds = [{made for made in CLASSES if issubclass(made, kind)} for kind in (Command, Answer, Push)]
    assert set.union(*kinds) == set(CLASSES) == {form.made for form in map(wire.form_of, range(256)) if form}
    assert sum(map(len, kinds)) == len(CLASSES)


@pytest.mark.parametrize("made", COMMANDS, ids=lambda made: made.__name__)
def test_a_command_names_its_answers_and_is_never_answered_with_a_refusal_alone(made: type[Command]) -> None:
    assert made.answers and all(issubclass(each, Answer) and each is not Refusal for each in made.answers)


def test_what_ends_something_costs_no_place_where_it_is_asked_and_what_waits_costs_none() -> None:
    costs = {cost: {made.__name__ for made in COMMANDS if made.cost is cost} for cost in (Cost.WAIT, Cost.END)}
    assert costs == {
        Cost.WAIT: {"ReadEvents", "OpenReceiver", "ReceiveMessages", "TakeTransfer"},
        Cost.END: {
            "CancelRead",
            "CatalogApplied",
            "NamespacesApplied",
            "CloseReader",
            "ConfirmReaderClosed",
            "CloseProducer",
            "CloseOwner",
            "CloseReceiver",
            "CancelReceive",
            "GiveUpSession",
        },
    }


def test_a_command_about_a_log_begins_with_its_id_and_no_other_command_names_one() -> None:
    for made in COMMANDS:
        names = made.__struct_fields__
        assert ("log_id" in names) == issubclass(made, LogCommand)
        assert not issubclass(made, LogCommand) or names[0] == "log_id"


def test_what_is_opened_for_an_owner_names_him_and_says_so_by_its_class() -> None:
    """The broker remembers the owner of an OwnedCommand, and closes what he has open when he is gone."""
    with_owner = {made for made in COMMANDS if "owner" in made.__struct_fields__}
    of_keeper = {made for made in COMMANDS if issubclass(made, KeeperCommand)}  # whose peer is told by its owner
    assert with_owner == {made for made in COMMANDS if issubclass(made, OwnedCommand)} | of_keeper | {CloseOwner}


def test_a_push_says_whom_it_is_for() -> None:
    pushes = [made for made in CLASSES if issubclass(made, Push)]
    assert pushes and all(typing.get_type_hints(made)["owner"] is Owner for made in pushes)


@pytest.mark.parametrize(("declare", "kind"), [(command, Command), (answer, Answer), (push, Push)])
@pytest.mark.parametrize("number", [0, Done.number, 256])
def test_a_number_of_another_class_or_of_another_kind_is_not_given(
    declare: typing.Callable[[int], typing.Callable[[type], type]], kind: type, number: int
) -> None:
    before = dict(DECLARED)
    with pytest.raises(AssertionError, match="cannot have the number"):
        declare(number)(type("New", (kind,), {}))
    assert before == DECLARED


@pytest.mark.parametrize(("declare", "kind"), [(command, Command), (answer, Answer), (push, Push)])
def test_a_further_class_of_each_kind_finds_a_number(
    declare: typing.Callable[[int], typing.Callable[[type], type]], kind: type
) -> None:
    before, given = dict(DECLARED), 0
    try:
        for number in range(256):
            with suppress(AssertionError):
                declare(number)(type("New", (kind,), {}))
                given += 1
    finally:
        DECLARED.clear()
        DECLARED.update(before)
    assert given >= 10, "command.py's table wants another range for this kind"


def test_what_is_refused_was_not_stored_unless_it_says_otherwise() -> None:
    assert Refusal(NOT_FOUND, "").known
    assert not Refusal(TIMED_OUT, "", known=False).known


def test_owners_are_told_apart_by_process_and_by_connection() -> None:
    assert Owner(1, 2) == Owner(1, 2)
    assert len({Owner(1, 2), Owner(2, 1), Owner(1, 3), Owner(1, 2)}) == 3


def test_an_owner_covers_itself_and_a_process_all_of_its_connections() -> None:
    process, mine, another = Owner(1, -1), Owner(1, 2), Owner(2, 2)
    assert [process.covers(each) for each in (process, mine, another)] == [True, True, False]
    assert [mine.covers(each) for each in (process, mine, Owner(1, 3), another)] == [False, True, False, False]
