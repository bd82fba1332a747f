"""Imports go down only. The table is docs/floors.toml: folder = [what it may import]."""

import ast
import shutil
import tomllib
from pathlib import Path

from tests.floors.parsed import nodes, parsed

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads((ROOT / "docs/floors.toml").read_text())
MAY: dict[str, list[str]] = TABLE["may"]
# "" is the package itself
GROUND = {"", "__version__", "errors", "env", "limits", "counters", "metrics", "service_log", "alarms"}


def floor_of(module: str) -> str:
    """hubweir.event_hub.epoch -> event_hub, hubweir.amqp.types.decode -> amqp.types, hubweir.errors -> ground."""
    parts = module.split(".")[1:]
    for size in (2, 1):
        if ".".join(parts[:size]) in MAY:
            return ".".join(parts[:size])
    if (parts or [""])[0] in GROUND:
        return "ground"
    return f"nowhere ({module} has no line in docs/floors.toml)"


def imported(path: Path) -> set[str]:
    """Return the hubweir names that a file imports, wherever in the file it does so."""
    found = set()
    for node in nodes(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write it in full, or this test cannot see it"
            # `from hubweir import errors` and `from hubweir.errors import NotFound` both name the module errors
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "hubweir"}


def upward_imports(source: Path) -> list[str]:
    """Return one line for every import of the tree under source (the folder of hubweir/) that is not in the table."""
    wrong = []
    for path in sorted((source / "hubweir").rglob("*.py")):
        if "tests" in path.parts[len(source.parts) :]:
            continue  # a test may reach for hubweir.testing
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        here = floor_of(module.removesuffix(".__init__"))
        for name in sorted(imported(path)):
            there = floor_of(name)
            allowed = GROUND_ONLY if here == "ground" else {here, *MAY.get(here, ())}
            if there not in allowed:
                wrong.append(f"{path.relative_to(source)}: {here} may not import {there} ({name})")
    return wrong


GROUND_ONLY = {"ground"}


def test_imports_go_down() -> None:
    wrong = upward_imports(ROOT / "src")
    assert not wrong, "\n".join(wrong)


def test_an_upward_import_planted_in_a_copy_is_caught_and_named(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src/hubweir", tmp_path / "hubweir", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    before = upward_imports(tmp_path)
    victim = tmp_path / "hubweir/kernels/stored_batch.py"
    victim.write_text("from hubweir.gateway.directory import Directory\n" + victim.read_text())
    (new,) = set(upward_imports(tmp_path)) - set(before)
    assert new == (
        "hubweir/kernels/stored_batch.py: kernels may not import gateway (hubweir.gateway.directory.Directory)"
    )


def test_a_folder_without_a_line_in_the_table_is_caught(tmp_path: Path) -> None:
    (tmp_path / "hubweir/attic").mkdir(parents=True)
    (tmp_path / "hubweir/attic/box.py").write_text("import hubweir.errors\n")
    (line,) = upward_imports(tmp_path)
    assert "hubweir.attic.box has no line in docs/floors.toml" in line


def test_the_table_has_no_cycle_and_names_only_itself() -> None:
    reached: dict[str, set[str]] = {"ground": set()}
    while len(reached) <= len(MAY):
        ready = [f for f, may in MAY.items() if f not in reached and all(below in reached for below in may)]
        assert ready, f"a cycle, or a name that has no line: {sorted(set(MAY) - set(reached))}"
        reached |= {name: set(MAY[name]) for name in ready}


def test_every_folder_stands_on_one_floor_and_imports_from_no_higher_one() -> None:
    level = {f: n for n, floor in enumerate(TABLE["floors"].values(), start=1) for f in floor["folders"]}
    assert sorted(level) == sorted(MAY)
    level["ground"] = 0
    assert sum(len(floor["folders"]) for floor in TABLE["floors"].values()) == len(MAY)
    for folder, may in MAY.items():
        for below in may:
            assert level[below] <= level[folder], f"{folder} stands below {below}"
