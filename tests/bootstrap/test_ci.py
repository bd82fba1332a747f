""".ci/run on a bare machine: it brings the browser that tests drive, where it can, and tests run in any case."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose ./run says how it was called, and a folder `bin` with all that the machine has."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip(".ci/run is a script of bash, and there is none")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "env", "dirname"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    program(tmp_path / "run", 'echo "run $*"')
    program(tmp_path / "bin/timeout", 'shift; exec "$@"')
    program(tmp_path / "bin/id", "echo 0")
    return tmp_path


def program(path: Path, text: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def called(checkout: Path) -> tuple[int, list[str], str]:
    """Its status, the lines that it and its programs print, and what goes to standard error."""
    ran = subprocess.run(
        [checkout / "bin/bash", checkout / ".ci/run", "--all"], env={"PATH": str(checkout / "bin")},
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL, cwd=os.sep,
    )  # fmt: skip
    return ran.returncode, ran.stdout.splitlines(), ran.stderr


def test_a_machine_without_a_browser_gets_debians(checkout: Path) -> None:
    program(checkout / "bin/apt-get", 'echo "apt-get $*"')
    status, lines, _ = called(checkout)
    assert status == 0 and lines[-1] == "run test --all"
    assert [line.split()[4:] for line in lines[:-1]] == [
        ["update"],
        ["install", "-y", "--no-install-recommends", "chromium"],
    ]


@pytest.mark.parametrize("there_is", ["a browser", "no apt", "no right"])
def test_nothing_is_installed_where_that_is_not_needed_or_cannot_be(checkout: Path, there_is: str) -> None:
    if there_is != "no apt":
        program(checkout / "bin/apt-get", 'echo "apt-get $*"')
    if there_is == "a browser":
        program(checkout / "bin/chromium", "exit 1")
    if there_is == "no right":
        program(checkout / "bin/id", "echo 1000")
    assert called(checkout) == (0, ["run test --all"], "")


def test_a_browser_that_cannot_be_installed_is_told_and_tests_run(checkout: Path) -> None:
    program(checkout / "bin/apt-get", "exit 100")
    status, lines, told = called(checkout)
    assert (status, lines) == (0, ["run test --all"]) and "the portal is NOT tried in a browser" in told


def test_the_status_is_that_of_the_tests(checkout: Path) -> None:
    program(checkout / "run", "exit 3")
    assert called(checkout)[0] == 3
