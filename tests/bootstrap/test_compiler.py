"""What a machine has to compile with: its own compiler, any other, or none; headers, or none."""

from pathlib import Path

import pytest

from bootstrap import compiler


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A machine with these programs on its PATH, and a Python built with `built-with`."""
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: {"CC": "built-with -pthread"}.get(name))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "include"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def has(*programs: str, headers: bool = True) -> None:
        for program in programs:
            (tmp_path / "bin" / program).write_text("#!/bin/sh\n")
            (tmp_path / "bin" / program).chmod(0o755)
        if headers:
            (tmp_path / "include").mkdir()
            (tmp_path / "include" / "Python.h").touch()

    return has


def test_the_compiler_of_this_python_comes_first_and_needs_no_variable(machine) -> None:  # type: ignore[no-untyped-def]
    machine("gcc", "built-with")
    assert (compiler.found(), compiler.variable(), compiler.missing()) == ("built-with", {}, "")


def test_any_other_one_serves_and_setuptools_is_told(machine) -> None:  # type: ignore[no-untyped-def]
    machine("clang")
    assert (compiler.found(), compiler.variable(), compiler.missing()) == ("clang", {"CC": "clang"}, "")


def test_what_the_user_names_wins(machine, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    machine("gcc", "built-with", "mine")
    monkeypatch.setenv("CC", "mine --fast")
    assert (compiler.found(), compiler.variable()) == ("mine", {})


def test_a_machine_without_a_compiler_or_without_headers_says_which(machine) -> None:  # type: ignore[no-untyped-def]
    machine(headers=False)
    assert (compiler.found(), compiler.variable(), compiler.missing()) == ("", {}, "C compiler")
    machine("cc", headers=False)
    assert compiler.missing().startswith("Python.h")
