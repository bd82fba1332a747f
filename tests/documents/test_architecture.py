"""ARCHITECTURE.md shows docs/floors.toml as it is, and names only what exists."""

import ast
import re
import tomllib
from pathlib import Path

from tests.floors.parsed import nodes, parsed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGE = ROOT / "src/hubweir"


def floors_table() -> str:
    """Return the floors as the page should show them, the highest first."""
    table = tomllib.loads((ROOT / "docs/floors.toml").read_text())
    rows = ["| floor | folder | may import | none of it contains |", "|---|---|---|---|"]
    for name, floor in reversed(table["floors"].items()):
        for place, folder in enumerate(floor["folders"]):
            below = ", ".join(table["may"][folder])
            first, last = (name, floor["without"]) if place == 0 else ("", "")
            rows.append(f"| {first} | `{folder}` | {below} | {last} |".replace("|  |", "| |"))
    ground = "`errors`, `env`, `limits`, `counters`, `metrics`, `service_log`, `alarms`"
    return "\n".join([*rows, f"| ground | {ground} | | anything of ours |"])


def test_the_floors_are_shown_as_they_are() -> None:
    shown = PAGE.split("<!-- floors: from docs/floors.toml -->\n")[1].split("\n<!-- end of floors -->")[0]
    assert shown == floors_table(), f"paste this between the marks:\n{floors_table()}"


def noun_table() -> list[str]:
    """Return the files and folders that the table of nouns names."""
    section = PAGE.split("## Where each noun lives")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return re.findall(r"`([\w/]+(?:/|\.py))`", "\n".join(rows))


def test_every_noun_is_where_the_page_says() -> None:
    assert noun_table()
    assert not [name for name in noun_table() if not (PACKAGE / name).exists()]


def lost_functions(page: str) -> list[str]:
    """The names of the form `file.py:function` that lead to no function."""
    lost = []
    for file, function in re.findall(r"`([\w/]+\.py):(\w+)`", page):
        path = PACKAGE / file
        found = nodes(parsed(path)) if path.is_file() else ()
        functions = {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        if function not in functions:
            lost.append(f"{file}:{function}")
    return lost


def test_each_step_begins_where_the_page_says() -> None:
    assert len(re.findall(r"\.py:\w+`", PAGE)) > 20
    assert not lost_functions(PAGE)


def test_a_function_that_is_gone_is_found() -> None:
    planted = "`amqp/endpoint.py:receive_data` `amqp/endpoint.py:swallow` `amqp/gone.py:open_node`"
    assert lost_functions(planted) == ["amqp/endpoint.py:swallow", "amqp/gone.py:open_node"]
