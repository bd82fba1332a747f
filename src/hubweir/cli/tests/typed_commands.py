"""What the tests of commands share: the type of the fixture `type_command`, and how a command was refused."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

from hubweir.errors import Condition, ServiceError

Typed = Callable[..., Result]


def condition_of(result: Result) -> Condition:
    """The condition that a command failed with, which main() turns into a line and exit code 1."""
    assert isinstance(result.exception, ServiceError), result.output
    return result.exception.condition
