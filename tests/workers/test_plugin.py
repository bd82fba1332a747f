"""Small planted projects, run in two workers: what stays together, and that nothing that goes wrong stays silent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """
[pytest]
addopts = --import-mode=importlib -p no:asyncio -p no:cacheprovider
timeout = 60
timeout_method = signal
filterwarnings = error
"""
WRITES = """
import os, pytest
@pytest.mark.parametrize("number", range(4))
def test_writes_its_worker(number):
    with open("ran", "a") as ran:
        ran.write(f"{os.environ['PYTEST_XDIST_WORKER']} {os.environ['PYTEST_CURRENT_TEST']}\\n")
"""
GREEN = [f"src/test_{number}.py" for number in range(4)] + [f"tests/spark/test_{number}.py" for number in range(3)]
NOTICE = """
from tests.workers.notices import notice
def pytest_configure(config):
    notice(config, "tests/spark did NOT run", "no Java")
"""
FAILS = "def test_fails():\n    assert 1 == 2\n"
DIES = "import os\ndef test_before(): pass\ndef test_dies():\n    os._exit(3)\ndef test_behind(): pass\n"
SLEEPS = "import pytest, time\n@pytest.mark.timeout(1)\ndef test_sleeps():\n    time.sleep(100)\n"
COUNTS = """
import os
def pytest_collection_finish(session):
    if "PYTEST_XDIST_WORKER" in os.environ:
        with open("found", "a") as found:
            found.write(f"{os.environ['PYTEST_XDIST_WORKER']} {len(session.items)}\\n")
"""
EVERYTHING = SETTINGS + "testpaths = src tests\n"
WARNS = "import warnings\ndef test_warns():\n    warnings.warn('old')\n"


@dataclass(frozen=True)
class Finished:
    status: int
    output: str
    workers: dict[str, set[str]]  # of each file, those that ran something of it


def run(folder: Path, files: dict[str, str], *options: str, paths: tuple[str, ...] = (".",)) -> Finished:
    for name, text in {"pytest.ini": SETTINGS, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    # What else is installed for pytest, a planted project does not use, and each of its processes would import it.
    plugins = ["-p", "xdist", "-p", "pytest_timeout"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-n", "2", *options, *paths],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    workers = defaultdict(set)
    for line in (folder / "ran").read_text().splitlines():
        worker, test = line.split(" ", 1)
        workers[test.split("::")[0]].add(worker)
    return Finished(done.returncode, done.stdout + done.stderr, dict(workers))


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run with one of everything that can go wrong."""
    files = dict.fromkeys(GREEN, WRITES) | {"tests/spark/conftest.py": NOTICE}
    files |= {"src/test_fails.py": FAILS, "src/test_dies.py": DIES, "src/test_sleeps.py": SLEEPS}
    files |= {"src/test_warns.py": WARNS}
    return run(tmp_path_factory.mktemp("wrong"), files, "-p", "tests.workers.plugin")


def test_a_file_stays_in_one_worker_and_spark_in_one(wrong: Finished) -> None:
    assert sorted(wrong.workers) == sorted(GREEN)
    assert all(len(workers) == 1 for workers in wrong.workers.values()), wrong.workers
    assert len(set().union(*(wrong.workers[name] for name in GREEN if name.startswith("tests/spark")))) == 1


def test_without_the_plugin_the_same_files_are_torn_apart(tmp_path: Path) -> None:
    """The control: two workers do share the files when nobody keeps them together. And a green run ends with 0."""
    finished = run(tmp_path, dict.fromkeys(GREEN, WRITES))
    assert finished.status == 0 and "28 passed" in finished.output
    assert any(len(workers) == 2 for workers in finished.workers.values())


def test_what_fails_in_a_worker_fails_the_run(wrong: Finished) -> None:
    assert wrong.status == 1
    assert "FAILED src/test_fails.py::test_fails - assert 1 == 2" in wrong.output
    assert "FAILED src/test_warns.py::test_warns - UserWarning: old" in wrong.output
    assert "FAILED src/test_sleeps.py::test_sleeps - Failed: Timeout (>1.0s)" in wrong.output


def test_a_test_that_ends_its_worker_fails_once_and_the_others_run(wrong: Finished) -> None:
    assert len(re.findall("^FAILED src/test_dies.py::test_dies", wrong.output, re.MULTILINE)) == 1
    assert "4 failed, 30 passed" in wrong.output


def test_the_one_worker_that_replaces_a_dead_one_goes_on_with_tests_that_stand_alone(tmp_path: Path) -> None:
    """Left are two groups of one test each: pytest-xdist gave it the first, and both waited for ever."""
    alone = WRITES.replace("range(4)", "range(1)")
    finished = run(tmp_path, {"src/test_0.py": DIES, "src/test_1.py": alone}, "-p", "tests.workers.plugin", "-n", "1")
    assert "1 failed, 3 passed" in finished.output


def test_what_did_not_run_is_told_once_at_the_end(wrong: Finished) -> None:
    assert wrong.output.count("tests/spark did NOT run") == wrong.output.count("no Java") == 1


def found_by(folder: Path) -> dict[str, int]:
    """How many tests each worker has found."""
    return {worker: int(count) for worker, count in map(str.split, (folder / "found").read_text().splitlines())}


def run_everything(folder: Path, *options: str, paths: tuple[str, ...] = ()) -> Finished:
    files = {**dict.fromkeys(GREEN, WRITES), "pytest.ini": EVERYTHING, "conftest.py": COUNTS}
    return run(folder, files, "-p", "tests.workers.plugin", *options, paths=paths)


def test_in_a_run_of_everything_a_worker_that_waits_looks_for_nothing_else(tmp_path: Path) -> None:
    """tests/spark waits; the worker that computes has found all that there is, and each test runs once."""
    finished = run_everything(tmp_path)
    assert finished.status == 0 and "28 passed" in finished.output
    assert found_by(tmp_path) == {"gw0": 28, "gw1": 12}
    assert {worker for name in GREEN[:4] for worker in finished.workers[name]} == {"gw0"}


@pytest.mark.parametrize(("options", "paths"), [((), ("src", "tests")), (("-n", "1"), ())])
def test_control_workers_look_for_all_of_chosen_paths_and_one_alone_for_everything(
    tmp_path: Path, options: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    finished = run_everything(tmp_path, *options, paths=paths)
    assert finished.status == 0 and "28 passed" in finished.output
    assert set(found_by(tmp_path).values()) == {28}


def test_the_worker_in_the_place_of_a_dead_one_looks_for_everything(tmp_path: Path) -> None:
    """The only one that computes dies, and the one that waits has not looked for what is left."""
    files = {"src/test_0.py": DIES, "src/test_1.py": WRITES, "tests/spark/test_0.py": WRITES, "conftest.py": COUNTS}
    finished = run(tmp_path, {**files, "pytest.ini": EVERYTHING}, "-p", "tests.workers.plugin", paths=())
    assert "1 failed, 10 passed" in finished.output
    assert found_by(tmp_path) == {"gw0": 11, "gw1": 4, "gw2": 11}
