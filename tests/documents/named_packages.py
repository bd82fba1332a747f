"""What a page tells its reader to install, and which modules the reader then has.

| on the page                             | in a checkout it brings         | in an installation it brings |
|-----------------------------------------|---------------------------------|------------------------------|
| `./run python`                          | the extra `demo` of the project |                              |
| `./run python --with spark`             | the extra `spark`, too          |                              |
| `./run python -m pip install NAMES`     | the packages                    |                              |
| `pip install NAMES`                     |                                 | the packages                 |

Both have hubweir. A package comes with those that it requires, by the metadata of the environment of the tests, which
has all of them; so a name that no test knows brings nothing.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
HUBWEIR = "hubweir"
# Parts of the package that import what an extra alone brings.
OF_AN_EXTRA = {"hubweir.spark": "spark", "hubweir.pipelines": "spark"}


class Way(StrEnum):
    """How a reader came to hubweir."""

    CHECKOUT = "checkout"
    INSTALLATION = "installation"


def told(text: str, way: Way) -> set[str]:
    """The packages that the page tells a reader of this way to install, in its own words."""
    found: set[str] = set()
    for command in _commands(text):
        in_checkout = command[:2] == ["./run", "python"]
        if in_checkout and way is Way.CHECKOUT:
            found |= set(EXTRAS["demo"])
            if command[2:4] == ["--with", "spark"]:
                found.add(f"{HUBWEIR}[spark]")
        if "install" in command[1:] and in_checkout is (way is Way.CHECKOUT):
            place = command.index("install")
            names = command[place + 1 :]
            # Options install files of pins, or one wheel: no name stands behind those.
            if Path(command[place - 1]).name == "pip" and not any(name.startswith("-") for name in names):
                found |= {name for name in names if not name.endswith((".whl", ".tar.gz"))}
    return found


def not_brought(text: str, program: str, way: Way) -> list[str]:
    """The modules that a program of the page imports, and that a reader of this way has not."""
    names = {(canonicalize_name(each.name), extra) for each, extra in _with_required([HUBWEIR, *told(text, way)])}
    extras = {extra for name, extra in names if name == HUBWEIR}
    return sorted(
        module
        for module in imported(program)
        if not _is_ours(module, extras)
        and module.partition(".")[0] not in sys.stdlib_module_names
        and not any(_path(module) in _modules(name) for name, _ in names)
    )


def imported(program: str) -> set[str]:
    """The modules that it names, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def _commands(text: str) -> Iterator[list[str]]:
    """Each command of a console block, and each code of a sentence, as words."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            yield shlex.split(command, comments=True)
    sentences = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`((?:\./run|pip) [^`]+)`", sentences):
        yield shlex.split(code)


def _with_required(names: list[str]) -> set[tuple[Requirement, str]]:
    """These packages and all that they require, each with one of its extras; "" is the package without any."""
    found: set[tuple[Requirement, str]] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        for extra in ("", *requirement.extras):
            if (requirement, extra) not in found:
                found.add((requirement, extra))
                waiting += _required(requirement.name, extra)
    return found


def _required(name: str, extra: str) -> list[Requirement]:
    if canonicalize_name(name) == HUBWEIR:
        texts = EXTRAS[extra] if extra else PROJECT["dependencies"]
    else:
        try:
            texts = distribution(name).requires or []
        except PackageNotFoundError:
            texts = []
    requirements = [Requirement(text) for text in texts]
    return [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": extra})]


@cache
def _modules(name: str) -> frozenset[PurePosixPath]:
    """The files of a package that are modules, without their ends: `azure` is no module of azure-eventhub."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return frozenset()
    return frozenset(
        file.parent / file.name.partition(".")[0] for file in files if file.suffix in (".py", ".so", ".pyd")
    ) | frozenset(file.parent for file in files if file.name == "__init__.py")


def _path(module: str) -> PurePosixPath:
    return PurePosixPath(module.replace(".", "/"))


def _is_ours(module: str, extras: set[str]) -> bool:
    part = next((part for part in OF_AN_EXTRA if f"{module}.".startswith(f"{part}.")), None)
    return module.partition(".")[0] == HUBWEIR and (part is None or OF_AN_EXTRA[part] in extras)
