"""What a program needs is fetched once, and compiled once for the same files and the same compiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.foreign import toolchain
from tests.conformance.foreign.toolchain import NotRun, Program, prepare

COMPILER = "#!/bin/sh\necho compiled >> log\ncat main.txt other.txt > program\n! grep wrong program\n"
PROGRAM = Program(
    name="written",
    tools=("sh",),
    pins=("pins.txt",),
    sources=("main.txt", "other.txt"),
    fetch=("sh", "-c", "echo fetched >> log"),
    build=("written-compiler",),
    run=("cat", "program"),
)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the program's own files; a compiler is on the path that joins them."""
    monkeypatch.setattr(toolchain, "HERE", tmp_path / "here")
    monkeypatch.setattr(toolchain, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    folder = tmp_path / "here" / PROGRAM.name
    for path, text in (
        (folder / "pins.txt", "1.0"),
        (folder / "main.txt", "main "),
        (folder / "other.txt", "other"),
        (tmp_path / "bin" / "written-compiler", COMPILER),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "bin" / "written-compiler").chmod(0o755)
    return folder


def prepared(program: Program = PROGRAM) -> tuple[str, list[str]]:
    """The program that stands ready, and what was done for it since its packages were fetched."""
    prepare(program, lambda line: None)
    return (program.folder / "program").read_text(), (program.folder / "log").read_text().split()


def test_the_second_run_finds_all_ready(sources: Path) -> None:
    assert prepared() == prepared() == ("main other", ["fetched", "compiled"])


def change_main(sources: Path) -> Program:
    (sources / "main.txt").write_text("mean ")
    return PROGRAM


def move_a_letter(sources: Path) -> Program:
    (sources / "main.txt").write_text("main o")
    (sources / "other.txt").write_text("ther")
    return PROGRAM


def change_the_command(sources: Path) -> Program:
    return replace(PROGRAM, build=(*PROGRAM.build, "-O"))


def change_the_environment(sources: Path) -> Program:
    return replace(PROGRAM, environment={"OPTIONS": "-O"})


def touch_the_compiler(sources: Path) -> Program:
    os.utime(sources.parents[1] / "bin" / "written-compiler", (1, 1))
    return PROGRAM


def install_another_compiler(sources: Path) -> Program:
    compiler = sources.parents[1] / "bin" / "written-compiler"
    other = compiler.rename(compiler.with_name("other-compiler"))
    compiler.symlink_to(other)  # its time is that of the first one
    return PROGRAM


@pytest.mark.parametrize(
    "change",
    [
        change_main,
        move_a_letter,
        change_the_command,
        change_the_environment,
        touch_the_compiler,
        install_another_compiler,
    ],
)
def test_what_another_build_would_make_is_compiled_anew(sources: Path, change: Callable[[Path], Program]) -> None:
    prepared()
    program, done = prepared(change(sources))
    joined = (sources / "main.txt").read_text() + (sources / "other.txt").read_text()
    assert (program, done) == (joined, ["fetched", "compiled", "compiled"])


def test_other_pins_begin_with_an_empty_folder(sources: Path) -> None:
    prepared()
    (sources / "pins.txt").write_text("2.0")
    assert prepared() == ("main other", ["fetched", "compiled"])


def test_a_build_that_failed_is_tried_again_also_for_the_files_before_it(sources: Path) -> None:
    prepared()
    (sources / "other.txt").write_text("wrong")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="written-compiler ended with 1: main wrong"):
            prepare(PROGRAM, lambda line: None)
    (sources / "other.txt").write_text("other")
    assert prepared() == ("main other", ["fetched", *["compiled"] * 4])


def test_packages_that_cannot_be_had_are_not_run(sources: Path) -> None:
    with pytest.raises(NotRun, match="its packages cannot be had: false ended with 1"):
        prepare(replace(PROGRAM, fetch=("false",)), lambda line: None)
    assert prepared() == ("main other", ["fetched", "compiled"]), "the next run tries it again"


def test_a_program_whose_tool_this_machine_lacks_is_not_run(sources: Path) -> None:
    with pytest.raises(NotRun, match="no-such-tool is not installed"):
        prepare(replace(PROGRAM, tools=("sh", "no-such-tool")), lambda line: None)
