"""A live namespace for commands, and a way to type one."""

from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from hubweir.cli.main import hubweir
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        yield running


@pytest.fixture
def type_command(namespace: RunningNamespace) -> Callable[..., Result]:
    """Type a command at the live namespace; `stdin` is what its standard input holds."""

    def typed(*arguments: str, stdin: str = "") -> Result:
        environment = {"HUBWEIR_CONNECTION_STRING": namespace.connection_string()}
        return CliRunner().invoke(hubweir, arguments, input=stdin, env=environment)

    return typed
