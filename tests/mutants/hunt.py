"""./run mutants: plants small defects in a folder, one at a time, and counts how many the folder's tests find.

    ./run mutants                     what there is to hunt in
    ./run mutants FOLDER              five minutes in one folder: messaging_store, event_hub, broker, capture, auth …
    ./run mutants all --minutes 60    every folder, the time shared among them

The folder's tests run once under coverage.py, and later those that have changed; so each defect meets only the tests
that run its line, the quickest first, until one fails. A defect whose tests hang counts as found. Defects are drawn by
a seed, in turn from each module, until the time is over. Each worker plants in a copy of the checkout; the checkout
itself is never touched.

What no test finds is printed as it would be planted. Either a test is missing, or the source does nothing there and can
go, or the defect changes nothing: then its row stands in docs/reliability.md, and it counts as neither.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.mutants.areas import AREAS, PACKAGE, Area
from tests.mutants.coverage_map import CoverageMap, measure
from tests.mutants.defects import Defect, defects_of
from tests.mutants.equivalent import Judged, cell, judged_equivalent

GOAL_PERCENT = 90
TESTS_BUDGET_S = 20.0  # of measured time: what one defect's tests may take
HANG_FACTOR, HANG_LEAST_S = 6, 60  # a defect's tests hang when they take so many times as long, and this long
LOOP_FACTOR, LOOP_LEAST_S = 2, 20  # the same in seconds of the processor: a busy machine makes no test loop
ONE_TEST_LIMIT_S = 60
# pytest: tests failed; interrupted, as by an import that fails; an internal error, as by a fault at collection.
_FOUND = (1, 2, 3, 4)


@dataclass(slots=True)
class Hunt:
    """One area's hunt: what was planted, and how it ended. Written by the workers under `lock`."""

    area: Area
    map: CoverageMap
    waiting: Iterator[tuple[str, Defect]]
    ends_at: float
    found: int = 0
    hung: int = 0
    survivors: list[tuple[str, Defect]] = field(default_factory=list)
    by_module: dict[str, list[int]] = field(default_factory=dict)  # found, planted
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> tuple[str, Defect] | None:
        """The next defect to plant; None when the time is over or all were planted."""
        with self.lock:
            return None if time.monotonic() > self.ends_at else next(self.waiting, None)

    def note(self, module: str, defect: Defect, outcome: str) -> None:
        """outcome: found, hung or survived."""
        with self.lock:
            score = self.by_module.setdefault(module, [0, 0])
            score[1] += 1
            if outcome == "survived":
                self.survivors.append((module, defect))
            else:
                score[0] += 1
                self.found += outcome == "found"
                self.hung += outcome == "hung"
            planted = self.found + self.hung + len(self.survivors)
            print(f"\r{self.area.name}: {planted} planted, {len(self.survivors)} not found ", end="", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The verb. 0 when every area reaches the goal."""
    chosen = _options().parse_args(arguments)
    if chosen.folder is None:
        print("folders: all, " + ", ".join(area.name for area in AREAS))
        return 0
    root = Path.cwd()
    areas = [area for area in AREAS if chosen.folder in ("all", area.name)]
    good = True
    for number, area in enumerate(areas):
        minutes = chosen.minutes / len(areas)
        hunt = hunt_in(root, area, seed=chosen.seed, minutes=minutes, workers=chosen.workers, only=chosen.only)
        print(report(root, hunt))
        good = good and (percent(hunt) >= GOAL_PERCENT or not _planted(hunt))
        if number + 1 < len(areas):
            print()
    return 0 if good else 1


def hunt_in(root: Path, area: Area, *, seed: int, minutes: float, workers: int, only: str | None = None) -> Hunt:
    """Hunt in one area for so long, the measuring of its tests not counted. only: part of a module's path."""
    with tempfile.TemporaryDirectory(prefix="hubweir-mutants-") as folder:
        trees = [_copy(root, Path(folder) / f"tree-{number}") for number in range(workers)]
        print(f"{area.name}: measuring which test runs which line …", flush=True)
        known = measure(root, trees[0], area, _environ(trees[0], seed))
        for test in known.failed:
            print(f"left out, it fails without any defect: {test}")
        drawn = list(draw(trees[0], area, known, seed, only))  # root may be edited meanwhile
        print(f"{area.name}: {len(known.tests)} tests, {len(drawn)} defects to draw from", flush=True)
        hunt = Hunt(area, known, iter(drawn), time.monotonic() + minutes * 60)
        threads = [threading.Thread(target=_work, args=(hunt, tree, seed)) for tree in trees]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print()
        return hunt


def draw(root: Path, area: Area, known: CoverageMap, seed: int, only: str | None) -> Iterator[tuple[str, Defect]]:
    """The defects on lines that tests run, in turn from each module, in an order that the seed says."""
    random = Random(f"mutants {seed} {area.name}")
    equivalent = judged_equivalent(root)
    piles: list[list[tuple[str, Defect]]] = []
    for pattern in area.modules:
        for path in sorted(root.glob(pattern)):
            module = str(path.relative_to(root))
            if only is not None and only not in module:
                continue
            lines = known.lines.get(module, {})
            pile = [
                (module, defect)
                for defect in defects_of(path.read_bytes())
                if lines.get(defect.line) and judged(module, defect) not in equivalent
            ]
            random.shuffle(pile)
            piles.append(pile)
    while piles := [pile for pile in piles if pile]:
        for pile in piles:
            yield pile.pop()


def judged(module: str, defect: Defect) -> Judged:
    """How docs/reliability.md would name a defect."""
    return Judged(module.removeprefix(f"{PACKAGE}/"), cell(defect.old_lines), cell(defect.new_lines))


def _work(hunt: Hunt, tree: Path, seed: int) -> None:
    while (drawn := hunt.next()) is not None:
        module, defect = drawn
        path = tree / module
        source = path.read_bytes()
        path.write_bytes(defect.planted(source))
        try:
            hunt.note(module, defect, _try(hunt.map, tree, module, defect, seed))
        finally:
            path.write_bytes(source)


def _try(known: CoverageMap, tree: Path, module: str, defect: Defect, seed: int) -> str:
    """Run the tests that meet a planted defect."""
    last = defect.line + defect.old.count("\n")
    tests = known.covering(module, defect.line, last, TESTS_BUDGET_S)
    chosen = tree / "chosen_tests.txt"
    chosen.write_text("\n".join(tests))
    seconds = sum(each for test, each in zip(known.tests, known.seconds, strict=True) if test in set(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header",
               f"--timeout={ONE_TEST_LIMIT_S + int(HANG_FACTOR * seconds)}", f"@{chosen}"]  # fmt: skip
    limited = ["/bin/sh", "-c", 'ulimit -t "$0"; exec "$@"', str(LOOP_LEAST_S + int(LOOP_FACTOR * seconds)), *command]
    child = subprocess.Popen(
        limited, cwd=tree, env=_environ(tree, seed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        status = child.wait(HANG_LEAST_S + HANG_FACTOR * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.wait()
        return "hung"
    if status < 0:  # ended by a signal: the limit's
        return "hung"
    return "found" if status in _FOUND else "survived"


def _copy(root: Path, tree: Path) -> Path:
    """A copy of what tests need of the checkout, compiled kernels included."""
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".hubweir", "hubweir-data", ".hypothesis", ".*_cache")
    shutil.copytree(root, tree, ignore=ignored, symlinks=True)
    return tree


def _environ(tree: Path, seed: int) -> dict[str, str]:
    """The child's environment: the copy on the path, seeds of histories fixed, no bytecode of planted modules kept."""
    own = {"PYTHONPATH": str(tree / "src"), "HUBWEIR_FIRST_SEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
    return os.environ | own


def _planted(hunt: Hunt) -> int:
    return hunt.found + hunt.hung + len(hunt.survivors)


def percent(hunt: Hunt) -> float:
    """Found of planted, in percent."""
    return 100 * (hunt.found + hunt.hung) / max(1, _planted(hunt))


def report(root: Path, hunt: Hunt) -> str:
    """What a person reads at the end of an area's hunt."""
    lines = [f"{hunt.area.name}: {_planted(hunt)} planted, {hunt.found} found, {hunt.hung} found by a hang, "
             f"{len(hunt.survivors)} not found: {percent(hunt):.1f} % (goal {GOAL_PERCENT} %)"]  # fmt: skip
    for module, (found, planted) in sorted(hunt.by_module.items()):
        if found < planted:
            lines.append(f"  {module}: {found} of {planted}")
    for module, defect in sorted(hunt.survivors, key=lambda each: (each[0], each[1].start)):
        lines += ["", f"{module}:{defect.line}: {defect.kind}; no test finds it",
                  *_marked("-", defect.old_lines), *_marked("+", defect.new_lines)]  # fmt: skip
    return "\n".join(lines)


def _marked(mark: str, text: str) -> list[str]:
    return [f"  {mark} {line.strip()}" for line in text.strip().splitlines()]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run mutants", description=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    names = ["all", *(area.name for area in AREAS)]
    parser.add_argument("folder", nargs="?", choices=names, metavar="FOLDER", help=", ".join(names))
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to plant, in all (5)")
    parser.add_argument("--seed", type=int, default=1, help="which defects are drawn first (1)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="planted at a time (one a core)")
    parser.add_argument("--only", metavar="TEXT", help="only modules with this in their path")
    return parser


if __name__ == "__main__":
    sys.exit(main())
