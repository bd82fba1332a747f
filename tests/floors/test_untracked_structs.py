"""Structs that the garbage collector does not look into (gc=False) hold plain values: no cycle goes through one.

Where one holds an object, all that the object reaches may stay for good: the collector counts a reference to it whose
owner it does not know.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.floors.parsed import nodes
from tests.floors.test_tidy import SOURCE, production
from tests.floors.test_words import plant

PLAIN = {"bool", "bytes", "float", "int", "str"}
ENUMS = {"Enum", "Flag", "IntEnum", "IntFlag", "StrEnum"}


class Classes:
    """Those of a tree, by their names; a base that is not of the tree has no classes."""

    def __init__(self, source: Path) -> None:
        self.by_name: defaultdict[str, list[ast.ClassDef]] = defaultdict(list)
        self.modules: dict[ast.ClassDef, str] = {}
        for module, tree in production(source):
            for node in nodes(tree):
                if isinstance(node, ast.ClassDef):
                    self.by_name[node.name].append(node)
                    self.modules[node] = module
        self.enums = {node.name for node in self.modules if any(ENUMS & set(bases(each)) for each in self.line(node))}

    def line(self, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """The class and all that it inherits from."""
        yield node
        for base in bases(node):
            for each in self.by_name.get(base, ()):
                if each.name != node.name:
                    yield from self.line(each)

    def is_untracked(self, node: ast.ClassDef) -> bool:
        """Says so, or inherits it; what is no plain True counts as False."""
        for each in self.line(node):
            for keyword in each.keywords:
                if keyword.arg == "gc":
                    return ast.unparse(keyword.value) != "True"
        return False

    def is_plain(self, annotation: ast.expr) -> bool:
        match annotation:
            case ast.Constant(value=value):
                return value is None or value is ...  # as in tuple[int, ...]
            case ast.Name(id=name):
                return name in PLAIN or name in self.enums
            case ast.BinOp(left=left, right=right):
                return self.is_plain(left) and self.is_plain(right)
            case ast.Subscript(value=ast.Name(id="tuple"), slice=part):
                return all(map(self.is_plain, part.elts if isinstance(part, ast.Tuple) else [part]))
        return False


def bases(node: ast.ClassDef) -> list[str]:
    """Their last names: Struct of msgspec.Struct, Generic of Generic[Owner]."""
    whole = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return [ast.unparse(base).rpartition(".")[2] for base in whole]


def objects_in_untracked_structs(source: Path) -> list[str]:
    classes = Classes(source)
    return [
        f"{classes.modules[node]}: {node.name} holds {ast.unparse(field.target)}: {ast.unparse(field.annotation)}"
        for node in classes.modules
        if classes.is_untracked(node)
        for each in classes.line(node)
        for field in each.body
        if isinstance(field, ast.AnnAssign) and not classes.is_plain(field.annotation)
    ]


def test_structs_that_the_collector_does_not_look_into_hold_plain_values() -> None:
    found = objects_in_untracked_structs(SOURCE)
    assert not found, "without gc=False, or with plain values only:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "annotation",
    ["Link", "Link | None", "None | Link", "int | Link", "tuple[int, Link]", "tuple[Link, ...]", "tuple[Link]",
     "tuple[tuple[int, Link], ...]", "tuple", "list[int]", "array[int]", "object", "hubweir.Link", "'Link'"],
)  # fmt: skip
def test_an_object_in_one_is_caught(tmp_path: Path, annotation: str) -> None:
    plant(tmp_path, "auth/claims.py", f"class A(Struct, frozen=True, gc=False):\n    size: int\n    its: {annotation}")
    assert objects_in_untracked_structs(tmp_path) == [f"hubweir/auth/claims.py: A holds its: {annotation}"]


@pytest.mark.parametrize(
    "planted",
    ["class A(msgspec.Struct, gc=False):\n    link: Link", "class A(Struct, Generic[Link], gc=0):\n    link: Link",
     "class A(Base[int]):\n    link: Link", "class A(Above, gc=False):\n    size: int",
     "class A(Highest):\n    link: Link", "class A(Base):\n    link: Link"],
)  # fmt: skip
def test_one_that_inherits_or_says_it_otherwise_is_caught(tmp_path: Path, planted: str) -> None:
    plant(tmp_path, "broker/above.py", "class Highest(Base): ...\nclass Above(Struct):\n    link: Link")
    plant(tmp_path, "auth/base.py", "class Base(Struct, gc=False):\n    size: int")
    plant(tmp_path, "auth/claims.py", planted)
    assert objects_in_untracked_structs(tmp_path) == ["hubweir/auth/claims.py: A holds link: Link"]


def test_plain_values_and_structs_that_are_looked_into_pass(tmp_path: Path) -> None:
    plant(tmp_path, "auth/kinds.py", "class Kind(enum.IntEnum): ...\nclass Base(Enum): ...\nclass Sort(Base): ...")
    lines = ("a: bool", "b: bytes | None = None", "c: tuple[int, str]", "d: tuple[Kind, ...]", "e: Sort", "f: float",
             "def size(self) -> Link:\n        link: Link = self.a")  # fmt: skip
    plant(tmp_path, "auth/claims.py", "class A(Struct, gc=False):\n    " + "\n    ".join(lines))
    plant(tmp_path, "auth/links.py", "class B(A, gc=True):\n    link: Link\nclass C(Struct):\n    link: Link")
    assert not objects_in_untracked_structs(tmp_path)
