"""When the environment counts as ready, and when not: on a small checkout of its own, nothing is installed."""

import json
import os
from pathlib import Path

import pytest

from bootstrap.environment import COMPILED, DEMO, TEST, Environment


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / DEMO).write_text("click==8.0\n")
    (tmp_path / "requirements" / TEST).write_text("click==8.0\npytest==9.0\n")
    (tmp_path / "src/hubweir/kernels/batches").mkdir(parents=True)
    (tmp_path / "src/hubweir/kernels/batches/_batches.pyx").write_text("def f(): pass\n")
    return tmp_path


def prepared(root: Path, *requirements: str) -> Environment:
    """Write down the state of an environment in which requirements are installed and no kernel was compiled."""
    env = Environment(root)
    env.python.parent.mkdir(parents=True)
    env.python.touch()
    env.state = {"python": env.identity(), "kernels": "not compiled", "kernel sources": env.kernel_key()}
    env.state |= {name: env.digest(f"requirements/{name}") for name in requirements}
    env.write_state()
    return Environment(root)


def test_a_new_checkout_has_nothing(checkout: Path) -> None:
    env = Environment(checkout)
    assert not env.has(DEMO)
    assert not env.kernels_current()


def test_the_tests_environment_serves_the_demo_but_not_the_other_way_round(checkout: Path) -> None:
    assert prepared(checkout, TEST).has(DEMO)
    (checkout / "requirements" / TEST).write_text("changed==1.0\n")
    assert not Environment(checkout).has(TEST)
    assert not Environment(checkout).has(DEMO)


def test_an_edit_of_a_kernel_source_asks_for_a_new_build(checkout: Path) -> None:
    assert prepared(checkout, DEMO).kernels_current()
    (checkout / "src/hubweir/kernels/batches/_batches.pyx").write_text("def f(): return 1\n")
    assert not Environment(checkout).kernels_current()


def test_a_compiled_kernel_that_was_deleted_is_built_again(checkout: Path) -> None:
    env = prepared(checkout, DEMO)
    env.remember(kernels=COMPILED)
    assert not Environment(checkout).kernels_current()


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"python": "2.7 somewhere else", DEMO: "x"})])
def test_a_broken_state_or_another_python_starts_over(checkout: Path, text: str) -> None:
    env = prepared(checkout, DEMO)
    (env.folder / "state.json").write_text(text)
    assert Environment(checkout).state == {}


@pytest.mark.skipif(os.name == "nt", reason="setuptools looks for the compiler itself there")
def test_a_compiler_that_appears_asks_for_a_build(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    monkeypatch.setenv("CC", "no-such-compiler")
    without = prepared(checkout, DEMO)
    assert without.kernels_current()
    (checkout / "cc").write_text("#!/bin/sh\n")
    (checkout / "cc").chmod(0o755)
    with_compiler = Environment(checkout)
    assert with_compiler.kernel_key() != without.state["kernel sources"] or "Python.h" in with_compiler.kernel_key()
