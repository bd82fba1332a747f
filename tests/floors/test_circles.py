"""No files import each other in a circle, not even for their types alone; one circle is known, and may only shrink."""

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.floors.test_floors import ROOT, imported

# Links, sessions and their connection hold each other and report events that name them: a protocol for each direction
# would say nearly all of Session a second time.
ENGINE = {
    f"hubweir.amqp.transport.{name}"
    for name in ("connection", "events", "link", "receiver_link", "report", "sender_link", "session", "settlement")
}


def imports(source: Path) -> dict[str, set[str]]:
    """Every module below source (the folder of hubweir/), with the modules that it imports."""
    paths = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (source / "hubweir").rglob("*.py")
        if "tests" not in path.parts[len(source.parts) :]
    }
    found = {}
    for module, path in paths.items():
        named = imported(path)
        # A name is a module, or something inside one.
        found[module] = {
            whole for name in named for whole in (name, name.rpartition(".")[0]) if whole in paths and whole != module
        } - {"hubweir"}
    return found


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Groups of modules each of which reaches all others of its group."""
    reach = {module: set(below) for module, below in graph.items()}
    changed = True
    while changed:
        changed = False
        for below in reach.values():
            grown = below.union(*(reach[module] for module in below))
            if grown != below:
                below |= grown
                changed = True
    in_one = {module for module, below in reach.items() if module in below}
    groups: list[set[str]] = []
    while in_one:
        module = min(in_one)
        group = {other for other in in_one if other in reach[module] and module in reach[other]}
        groups.append(group)
        in_one -= group
    return groups


def test_files_import_each_other_in_no_circle_but_the_engines() -> None:
    found = [group - ENGINE for group in circles(imports(ROOT / "src")) if group - ENGINE]
    assert not found, f"these import each other: {[sorted(group) for group in found]}"


def test_a_circle_planted_in_a_copy_is_caught_and_named(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src/hubweir", tmp_path / "hubweir", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    victim = tmp_path / "hubweir/event_hub/epoch.py"
    lines = ("from typing import TYPE_CHECKING", "if TYPE_CHECKING:", "    from hubweir.event_hub import partition", "")
    victim.write_text("\n".join(lines) + victim.read_text())
    other = tmp_path / "hubweir/event_hub/partition.py"
    other.write_text("from hubweir.event_hub.epoch import X\n" + other.read_text())
    (group,) = [group for group in circles(imports(tmp_path)) if not group & ENGINE]
    assert group == {"hubweir.event_hub.epoch", "hubweir.event_hub.partition"}


def test_the_known_circle_is_still_one() -> None:
    """A name that left it must leave the list."""
    assert any(group == ENGINE for group in circles(imports(ROOT / "src")))
    assert all(importlib.util.find_spec(name) for name in ENGINE)
