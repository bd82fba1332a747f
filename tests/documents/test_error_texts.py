"""What a refused person reads has no name of the code in it: a word with underscores is nobody's to type.

Settings are typed as flags (`--capture-storage`), so their names with underscores are for the settings' own errors
alone (config/). Names of AMQP maps stand in quotation marks, by their values, and are typed so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src" / "hubweir"
FOLDERS = ("namespace", "auth", "throughput_unit", "event_hub", "queue", "topic", "gateway", "portal", "broker/capture")
INTERNAL = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
# What makes an error of a text: a class, or a function that returns one.
MAKERS = re.compile(
    r"^(ServiceError|HttpRefusal|AuthRefused|BadStorage|NoDestination|out_of_range|_illegal|_wrong|_over)$"
)


def error_texts(source: str) -> Iterator[tuple[int, str]]:
    """The literal parts of texts from which errors are made, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if not MAKERS.search(name):
            continue
        for argument in node.args:
            for part in ast.walk(argument):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
                    yield part.lineno, part.value


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_error_names_what_only_the_code_has(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "tests" not in path.parts
        for line, text in error_texts(path.read_text())
        if INTERNAL.search(text)
    ]
    assert not found


def test_control_arm_a_name_of_the_code_is_found() -> None:
    planted = 'raise out_of_range(hub.title, f"retention_ms is {hub.retention_ms}; more is allowed")'
    assert [text for _, text in error_texts(planted) if INTERNAL.search(text)] == ["retention_ms is "]
