"""The trees of Python sources, parsed once a process however many rules look at them; a planted copy shares them."""

import ast
import functools
from pathlib import Path


def parsed(path: Path) -> ast.Module:
    """The tree of a file. Rules read it and never change it."""
    return _tree(path.read_text())


@functools.cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


@functools.cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a tree."""
    return tuple(ast.walk(tree))
