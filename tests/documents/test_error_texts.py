"""What people read of the service has no name of the code in it: a word with underscores is nobody's to type.

That holds for the texts of errors, and for the lines of the log. Settings are typed as flags (`--capture-storage`), so
their names with underscores are for the settings' own errors alone (config/), and for lines that name a setting as
docs/settings.md has it. Names of AMQP maps stand in quotation marks, by their values, and are typed so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src" / "hubweir"
# kernels, event_hub's KernelRefusal, testing: faults of the code itself. config: its names are typed.
FOLDERS = sorted(
    str(each.relative_to(ROOT))
    for each in ROOT.iterdir()
    if each.is_dir() and each.name not in ("__pycache__", "config", "kernels", "testing", "tests")
)
INTERNAL = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
# Names with underscores that people type: functions and columns of SQL, members of the cloud's and the house's JSON.
TYPED = re.compile(r"\bto_json\(|\bAS another_name\b")
# What makes an error of a text: a class, or a function that returns one.
MAKERS = re.compile(
    r"^(HttpRefusal|AuthRefused|[A-Z]\w*Error|BadStorage|NoDestination|out_of_range|_illegal|_wrong|_over)$"
)
# What makes a line of the log of a text: a method of a logger, a kind of line or its fields, an alarm or its text.
LINES = re.compile(r"^(debug|info|warning|error|exception|critical|say|LineKind|begin|AlarmKind|SettingOutcome)$")


def texts(source: str, makers: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The literal parts of texts that are given to makers, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if not makers.search(name):
            continue
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            for part in ast.walk(argument):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
                    yield part.lineno, part.value


def internal(source: str, makers: re.Pattern[str]) -> list[tuple[int, str]]:
    """Those of them that have a name of the code outside of braces: within them it is a field, which is not printed."""
    found = []
    for line, text in texts(source, makers):
        if INTERNAL.search(TYPED.sub("", re.sub(r"\{[^}]*\}", "", text))):
            found.append((line, text))
    return found


def in_folder(folder: str, makers: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "tests" not in path.parts
        for line, text in internal(path.read_text(), makers)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_error_names_what_only_the_code_has(folder: str) -> None:
    assert not in_folder(folder, MAKERS)


@pytest.mark.parametrize("folder", [*FOLDERS, "config", "kernels", "testing"])
def test_no_line_of_the_log_names_what_only_the_code_has(folder: str) -> None:
    assert not in_folder(folder, LINES)


@pytest.mark.parametrize("module", ["service_log.py", "alarms.py", "errors.py", "env.py", "metrics.py"])
def test_no_table_of_texts_names_what_only_the_code_has(module: str) -> None:
    source = (ROOT / module).read_text()
    assert not internal(source, LINES) and not internal(source, MAKERS)


def test_control_arm_a_name_of_the_code_is_found() -> None:
    planted = 'raise out_of_range(hub.title, f"retention_ms is {hub.retention_ms}; more is allowed")'
    assert [text for _, text in internal(planted, MAKERS)] == ["retention_ms is "]
    assert [text for _, text in internal('raise BackupError(f"no {a} segment_log here")', MAKERS)] == [
        " segment_log here"
    ]


@pytest.mark.parametrize(
    "planted",
    [
        'logger.info("%s: retention_ms is %d", name, ms)',
        'THROTTLED.say(logger, namespace=name, text=f"over the partition_cap of {n} units")',
        'LineKind("roll", logging.INFO, "log {log} at first_index {first}", "A segment was full.")',
        'self._alarms.begin(DISK_FULL, about, f"no space: free_bytes is {n}")',
    ],
)
def test_control_arm_a_name_of_the_code_in_a_line_is_found(planted: str) -> None:
    assert len(internal(planted, LINES)) == 1


def test_a_name_that_people_type_is_none_of_the_code() -> None:
    assert not internal('raise SparkError("select to_json(struct(*)) AS body")', MAKERS)
