"""The Python example of every page about a noun runs as it stands.

Without --all an example is forked from a process that has imported what several examples do.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.page_examples import OF_THE_CHECKOUT, PAGES, example, run_example
from tests.fork_server.forked_popen import ForkedPopen, ForkServer
from tests.fork_server.plugin import SERVER, started_server


def imported(program: str) -> set[str]:
    """The modules that a program names to import them."""
    named = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom):
            named.add(str(node.module))
        elif isinstance(node, ast.Import):
            named.update(each.name for each in node.names)
    return named


def reached(program: str) -> set[str]:
    """The modules that a program reaches as attributes of those that it has imported by their names."""
    names = imported(program)
    dotted = {ast.unparse(node) for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Attribute)}
    return {name for name in dotted if name in sys.modules and name.partition(".")[0] in names}


@pytest.fixture(scope="module", autouse=True)
def forks_of_examples(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.config.getoption("--all") or sys.platform != "linux":
        yield
        return
    counts = Counter(name for page in PAGES for name in imported(example(page.read_text())))
    modules = sorted(name for name, count in counts.items() if count > 1)
    with started_server(OF_THE_CHECKOUT, (*SERVER, *modules)) as (door, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForkedPopen, "server", ForkServer(lambda: door, OF_THE_CHECKOUT, texts=True))
        patch.setattr(subprocess, "Popen", ForkedPopen)
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_example_runs(page: Path) -> None:
    assert run_example(example(page.read_text())) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_example_imports_each_module_that_it_uses_by_its_name(page: Path) -> None:
    """A forked one would find those that others import."""
    program = example(page.read_text())
    assert reached(program) <= imported(program)


@pytest.mark.parametrize(("program", "said"), [("import no_such_module", "no_such_module"), ("exit(3)", "exit code 3")])
def test_control_arm_an_example_that_ends_badly_is_found(program: str, said: str) -> None:
    assert said in run_example(program)


def test_an_example_is_forked_where_the_run_is_no_whole_one(request: pytest.FixtureRequest) -> None:
    is_forked = SERVER[-1] in run_example("exit(open('/proc/self/cmdline').read())")
    assert is_forked is not (request.config.getoption("--all") or sys.platform != "linux")


def test_control_arm_a_module_that_is_not_imported_by_its_name_is_found() -> None:
    assert reached("import importlib\nimportlib.util.find_spec('a')") == {"importlib.util"}


def test_nouns_have_examples() -> None:
    assert {page.stem for page in PAGES} >= {
        *("event_hub", "partition", "consumer_group", "namespace", "shared_access_signature", "publisher_policy"),
        *("queue", "topic", "subscription", "rule", "message_session", "dead_letters", "duplicate_detection"),
        "transaction",
    }
