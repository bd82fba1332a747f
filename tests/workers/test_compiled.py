"""What a worker compiles is its share, all shares are everything, and pytest takes what was compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers.compiled import compile_modules, share_of

ROOT = Path(__file__).resolve().parents[2]
TEXT = "def test_same():\n    one, other = 1, 1\n    assert one == other\n"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    for name in ("test_a.py", "test_b.py", "under/test_c.py", "under/more/test_d.py", "under/helper.py", "test_e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TEXT)
    return tmp_path


def names(modules: list[Path]) -> list[str]:
    return [module.name for module in modules]


def test_shares_have_every_test_module_once_and_no_other(planted: Path) -> None:
    assert names(share_of(["."], planted, 0, 1)) == ["test_a.py", "test_b.py", "test_d.py", "test_c.py"]
    shares = [names(share_of(["."], planted, worker, 3)) for worker in range(3)]
    assert shares == [["test_a.py", "test_c.py"], ["test_b.py"], ["test_d.py"]]
    assert names(share_of(["under", "test_a.py::test_same", "under/more"], planted, 0, 1)) == [
        "test_a.py", "test_d.py", "test_c.py",
    ]  # fmt: skip


def test_what_is_compiled_is_not_compiled_again_until_it_is_changed(
    planted: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(planted / "kept"))
    modules = share_of(["."], planted, 0, 1)
    assert compile_modules(pytestconfig, modules) == 4
    assert compile_modules(pytestconfig, modules) == 0
    modules[1].write_text(TEXT + "\n")
    (planted / "test_a.py").write_text("this is no Python")
    assert compile_modules(pytestconfig, modules) == 1


@pytest.mark.parametrize("compiled", [True, False])
def test_pytest_rewrites_nothing_that_a_worker_compiled(
    planted: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """The control arm is the same folder when nobody compiled it."""
    # Bytecode lies beside each module here: elsewhere there would be none of pytest's own modules, either.
    monkeypatch.setattr(sys, "pycache_prefix", None)
    if compiled:
        compile_modules(pytestconfig, share_of(["."], planted, 0, 1))
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    traced = {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "", "PYTEST_DEBUG": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."]
    done = subprocess.run(
        [*command, "."], cwd=planted, env={**environ, **traced}, capture_output=True, text=True, timeout=100
    )
    assert "4 passed" in done.stdout
    # What is said of plugins does not count.
    said = [line for line in (done.stdout + done.stderr).splitlines() if str(planted) in line]
    assert sum("found cached rewritten pyc for" in line for line in said) == (4 if compiled else 0)
    assert sum(" rewriting " in line for line in said) == (0 if compiled else 4)
