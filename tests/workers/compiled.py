"""Test modules are compiled once for all workers, and not once by each.

pytest rewrites the assertions of a test module when it is imported, and keeps the bytecode. All workers collect the
same modules in the same order at the same time, so in a fresh checkout each of them would rewrite every one: a minute
of two cores. So each rewrites its share before it collects, and finds most of the others' done. The names of pytest's
that do this are its own, and may be others in another version: pytest is pinned, and a test sees that they do it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, _rewrite_test, _write_pyc, get_cache_dir, try_makedirs
from _pytest.assertion.rewrite import assertstate_key as STATE

from tests.workers.groups import number_of


def share_of(arguments: Sequence[str], root: Path, worker: int, workers: int) -> list[Path]:
    """The test modules below the paths that pytest was given which this one of the workers compiles."""
    places = {root / argument.partition("::")[0] for argument in arguments}
    modules = {path for place in places for path in ([place] if place.is_file() else place.rglob("test_*.py"))}
    return sorted(modules)[worker::workers]


def compile_modules(config: pytest.Config, modules: Sequence[Path]) -> int:
    """Rewrite those that are not, and keep them where pytest looks for them; how many were not."""
    made = 0
    for module in modules:
        folder = get_cache_dir(module)
        kept = folder / f"{module.stem}{PYC_TAIL}"
        if _read_pyc(module, kept) is not None:
            continue
        if not try_makedirs(folder):
            return made  # nobody may write there
        try:
            source, code = _rewrite_test(module, config)
        except SyntaxError:
            continue  # the collection says so
        made += _write_pyc(config.stash[STATE], code, source, kept)
    return made


def compile_share(config: pytest.Config) -> None:
    """What a worker does before it collects; nothing where there is one process, or no bytecode is to be written."""
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode or config.getoption("assertmode") != "rewrite":
        return
    number, count = number_of(worker["workerid"]), int(worker["workercount"])
    compile_modules(config, share_of(config.args, config.invocation_params.dir, number % count, count))
