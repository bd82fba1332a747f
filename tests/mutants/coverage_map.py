"""Which test runs which line, and how long each test takes: measured for an area before defects are planted.

`measure` runs the area's tests in a process of its own under coverage.py, with the test's id as the context. What it
learns of each test file is kept in .hubweir/mutants, with a digest of what it depends on: the file itself, what tests
share, and the modules that it ran. So the next hunt measures only what has changed since. A test that fails without any
defect is left out of the map, and named; its file is measured anew each time.

Seconds are of the processor: what else the machine does must not make a test look slow, so that it is not asked.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.areas import Area

KEPT = ".hubweir/mutants"
# Tests that plant a defect of their own: they say nothing about another one, and some take long.
CONTROL_ARMS = ("test_control_", "test_a_planted_defect")
# What tests share: a change of it may change what any of them runs.
SHARED = ("conftest.py", "src/hubweir/testing/*.py", "src/hubweir/**/tests/*.py", "tests/**/*.py")


@dataclass(slots=True)
class CoverageMap:
    """tests: ids by number. seconds: of each test, by number. lines: path → line → numbers of the tests that run it."""

    tests: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    lines: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def covering(self, path: str, first: int, last: int, budget_s: float) -> list[str]:
        """Ids of the tests that run a line of first..last, the quickest first, as many as the budget of seconds takes.

        The slowest test is always one of them, budget or not: a long history may be the only one that meets the line.
        """
        known = self.lines.get(path, {})
        numbers = {number for line in range(first, last + 1) for number in known.get(line, ())}
        chosen, spent = [], 0.0
        for number in sorted(numbers, key=lambda number: (self.seconds[number], number)):
            spent += self.seconds[number]
            if chosen and spent > budget_s:
                break
            chosen.append(self.tests[number])
        slowest = max(numbers, key=lambda number: self.seconds[number], default=None)
        if slowest is not None and self.tests[slowest] not in chosen:
            chosen.append(self.tests[slowest])
        return chosen

    def add(self, kept: dict[str, Any]) -> None:
        """Add what is kept of one test file: see _of_file."""
        for test, (seconds, ran) in kept["tests"].items():
            number = len(self.tests)
            self.tests.append(test)
            self.seconds.append(seconds)
            for path, lines in ran.items():
                for line in lines:
                    self.lines.setdefault(path, {}).setdefault(line, []).append(number)
        self.failed += kept["failed"]


def measure(root: Path, tree: Path, area: Area, environ: dict[str, str]) -> CoverageMap:
    """What the area's tests run of its modules: as root keeps it, or measured in tree, which is a copy of root.

    RuntimeError with pytest's words when they cannot be run.
    """
    kept_at = root / KEPT / f"{area.name}.json"
    kept: dict[str, Any] = json.loads(kept_at.read_text()) if kept_at.exists() else {}
    files = [str(path.relative_to(tree)) for pattern in area.tests for path in _test_files(tree, pattern)]
    shared = _digest(tree, *_shared(tree))
    unknown = [file for file in files if not _is_known(tree, file, kept.get(file), shared)]
    if unknown:
        learned = _run(tree, unknown, environ)
        modules = {str(path.relative_to(tree)) for pattern in area.modules for path in tree.glob(pattern)}
        for file in unknown:
            kept[file] = _of_file(learned.get(file, {"tests": {}, "failed": []}), modules)
            kept[file]["digest"] = _digest(tree, shared, file, *kept[file]["ran"])
        kept_at.parent.mkdir(parents=True, exist_ok=True)
        kept_at.write_text(json.dumps({file: kept[file] for file in files}))
    known = CoverageMap()
    for file in files:
        known.add(kept[file])
    return known


def _run(tree: Path, files: Sequence[str], environ: dict[str, str]) -> dict[str, Any]:
    out = tree / "coverage_map.json"
    command = [sys.executable, "-m", "tests.mutants.coverage_map", str(out), *files]
    done = subprocess.run(command, cwd=tree, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    learned: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    if not any(each["tests"] for each in learned.values()):
        raise RuntimeError(f"the tests cannot be measured:\n{done.stdout[-3000:]}")
    return learned


def _test_files(tree: Path, pattern: str) -> list[Path]:
    """Of a pattern of files, or of a folder."""
    return sorted(tree.glob(f"{pattern}/**/test_*.py") if (tree / pattern).is_dir() else tree.glob(pattern))


def _shared(tree: Path) -> list[str]:
    found = {path for pattern in SHARED for path in tree.glob(pattern) if not path.name.startswith("test_")}
    return sorted(str(path.relative_to(tree)) for path in found)


def _is_known(tree: Path, file: str, kept: dict[str, Any] | None, shared: str) -> bool:
    return kept is not None and not kept["failed"] and kept["digest"] == _digest(tree, shared, file, *kept["ran"])


def _of_file(learned: dict[str, Any], modules: set[str]) -> dict[str, Any]:
    """What is kept of a test file: each test's seconds and lines of the area's modules; and all modules that it ran."""
    tests = {
        test: (seconds, {path: each for path, each in lines.items() if path in modules})
        for test, (seconds, lines) in learned["tests"].items()
    }
    ran = {path for _, lines in learned["tests"].values() for path in lines}
    return {"tests": tests, "failed": learned["failed"], "ran": sorted(ran)}


def _digest(tree: Path, *names: str) -> str:
    """Of the files of these names; a name that is no file counts by itself."""
    digest = hashlib.sha256()
    for name in names:
        path = tree / name
        digest.update(hashlib.sha256(path.read_bytes() if path.is_file() else name.encode()).digest())
    return digest.hexdigest()


class _Recorder:
    """A plugin of pytest: names coverage's context after the running test, and notes how each test ended."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if not item.name.startswith(CONTROL_ARMS)]

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self._coverage.switch_context(nodeid)
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        self.seconds[nodeid] += time.process_time()
        self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def main(out: str, files: Sequence[str]) -> None:
    """The child process: run the test files, write what was learned."""
    import coverage
    import pytest

    cover = coverage.Coverage(data_file=None, source=["src/hubweir"], omit=["*/tests/*", "*/testing/*"])
    cover.start()
    recorder = _Recorder(cover)
    pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *files], plugins=[recorder])
    cover.stop()
    Path(out).write_text(json.dumps(_learned(recorder, cover.get_data())))


def _learned(recorder: _Recorder, data: Any) -> dict[str, Any]:
    """By test file: tests, by id their seconds and the lines that each ran, by module; and those that failed."""
    learned: dict[str, Any] = {}
    for test, seconds in recorder.seconds.items():
        of_file = learned.setdefault(test.partition("::")[0], {"tests": {}, "failed": []})
        if test in recorder.failed:
            of_file["failed"].append(test)
        else:
            of_file["tests"][test] = (seconds, {})
    for path in data.measured_files():
        module = str(Path(path).relative_to(Path.cwd()))
        for line, tests in data.contexts_by_lineno(path).items():
            for test in recorder.seconds.keys() & set(tests) - recorder.failed:
                learned[test.partition("::")[0]]["tests"][test][1].setdefault(module, []).append(line)
    return learned


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
