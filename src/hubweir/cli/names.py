"""The name that a command is about: its argument, or an option as `az eventhubs` has it."""

from __future__ import annotations

from collections.abc import Callable

import click

Command = Callable[..., None]

HUB_FLAGS, _HUB_TEXT = ("--eventhub-name", "--eventhub"), "The event hub that it belongs to."


def takes_name(metavar: str, *options: str) -> Callable[[Command], Command]:
    """Give a command the argument metavar and the options --name, -n and those given; it gets one `name`."""

    def decorate(command: Command) -> Command:
        @click.argument("argument", required=False, metavar=metavar)
        @click.option("--name", "-n", *options, "option", help=f"The same as {metavar}.")
        def with_name(argument: str | None, option: str | None, **rest: object) -> None:
            if argument is not None and option is not None and argument != option:
                raise click.UsageError(f"{metavar} is given twice: {argument} and {option}")
            name = argument if argument is not None else option
            if name is None:
                raise click.UsageError(f"Missing argument '{metavar}', or --name.")
            command(name=name, **rest)

        with_name.__name__ = command.__name__
        with_name.__doc__ = command.__doc__
        with_name.__click_params__ += getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # click's
        return with_name

    return decorate


def of_hub(what: str) -> Callable[[Command], Command]:
    """Give a command two arguments, an event hub and something of it; it gets `hub` and what."""

    def decorate(command: Command) -> Command:
        return click.argument("hub", metavar="NAME")(click.argument(what)(command))

    return decorate


def in_hub(command: Command) -> Command:
    """Give a command the option --eventhub-name, which must be given; it gets `hub`."""
    return click.option(*HUB_FLAGS, "hub", required=True, metavar="HUB", help=_HUB_TEXT)(command)
