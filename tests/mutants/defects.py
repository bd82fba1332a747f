"""Small defects that a tired person could write, found in a module's source: what ./run mutants plants.

A defect replaces one stretch of the source by another. The kinds are the mistakes that reviews of storage and
authorization code meet: a statement left out, two statements in the wrong order, a bound off by one, a condition
turned round, one condition of several forgotten, a flag or a sign turned round. Texts for people, log lines, assertions
and annotations are left alone, because a change of them is no defect of behaviour.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# What a comparison becomes when its bound moves by one, or when its sense is turned round.
_BOUNDS: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_SENSES: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+"}
_SWAPPED_NAMES = {"max": "min", "min": "max", "any": "all", "all": "any"}
# A call whose first name is one of these tells people something; it decides nothing.
_TELLING = ("logger", "logging")
# A statement that can be left out without leaving a name undefined.
_EFFECTS = (ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect of one module. start, end: bytes of the source that new takes the place of.

    before, behind: what else stands on the same lines.
    """

    line: int
    start: int
    end: int
    old: str
    new: str
    kind: str
    before: str = ""
    behind: str = ""

    def planted(self, source: bytes) -> bytes:
        """The source with the defect."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    @property
    def old_lines(self) -> str:
        """The whole lines that it changes, as they are."""
        return self.before + self.old + self.behind

    @property
    def new_lines(self) -> str:
        """The same lines, as planted."""
        return self.before + self.new + self.behind


def defects_of(source: bytes) -> list[Defect]:
    """Every defect of a module's functions, in the order of the source; each leaves a module that compiles."""
    tree = ast.parse(source)
    finder = _Finder(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_skipped(node):
            finder.visit_body(node.body)
    found = {(defect.start, defect.end, defect.new): defect for defect in finder.found}
    return sorted(
        (defect for defect in found.values() if _compiles(defect.planted(source))),
        key=lambda defect: (defect.start, defect.end, defect.new),
    )


def _is_skipped(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function says nothing but how an object looks to people, or is a line of an interface."""
    return node.name == "__repr__" or all(_is_text(each) for each in node.body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "defect", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Finder:
    """Collects the defects of one module, function by function."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.found: list[Defect] = []

    def visit_body(self, body: Sequence[ast.stmt]) -> None:
        """Statements of one block; functions inside are visited by their own turn."""
        for statement in body:
            self._visit_statement(statement)
        for first, second in zip(body, body[1:], strict=False):
            if _has_effect(first) and _has_effect(second) and not _are_independent(first, second):
                self._swap(first, second)

    def _visit_statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assert | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        if _has_effect(statement):
            self._replace(statement, "pass", "a statement is left out")
        if isinstance(statement, ast.If | ast.While):
            self._turn_round(statement.test)
        for block in _blocks(statement):
            self.visit_body(block)
        for expression in _expressions(statement):
            self._visit_expression(expression)

    def _visit_expression(self, expression: ast.expr) -> None:
        for node in _walk(expression):
            if isinstance(node, ast.Compare):
                self._visit_compare(node)
            elif isinstance(node, ast.BoolOp):
                for value in node.values:
                    rest = [self._text(each) for each in node.values if each is not value]
                    joined = (" and " if isinstance(node.op, ast.And) else " or ").join(rest)
                    self._replace(node, f"({joined})", "a condition is forgotten")
            elif isinstance(node, ast.BinOp) and type(node.op) in _SIGNS and not _is_textual(node):
                between = self._between(node.left, node.right)
                self._replace_between(node.left, node.right, between, _SIGNS[type(node.op)], "a sign is turned round")
            elif isinstance(node, ast.Constant) and type(node.value) is bool:
                self._replace(node, str(not node.value), "a flag is turned round")
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                self._replace(node, str(node.value + 1), "a number is off by one")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SWAPPED_NAMES:
                self._replace(node.func, _SWAPPED_NAMES[node.func.id], "a choice is turned round")
            elif isinstance(node, ast.IfExp):
                self._turn_round(node.test)

    def _visit_compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            between = self._between(left, right)
            if type(operator) in _BOUNDS:
                new, kind = _BOUNDS[type(operator)], "a bound is off by one"
                self._replace_between(left, right, between, new, kind)
            elif type(operator) in _SENSES:
                self._replace_between(left, right, between, _SENSES[type(operator)], "a condition is turned round")
            left = right

    def _turn_round(self, test: ast.expr) -> None:
        self._replace(test, f"(not ({self._text(test)}))", "a condition is turned round")

    def _swap(self, first: ast.stmt, second: ast.stmt) -> None:
        start, middle = self._span(first)
        behind, end = self._span(second)
        between = self._source[middle:behind].decode()
        if between.strip().startswith(";"):
            return
        new = self._text(second) + between + self._text(first)
        self._add(first.lineno, start, end, new, "an order is turned round")

    def _replace(self, node: ast.expr | ast.stmt, new: str, kind: str) -> None:
        start, end = self._span(node)
        self._add(node.lineno, start, end, new, kind)

    def _replace_between(self, left: ast.expr, right: ast.expr, span: tuple[int, int], new: str, kind: str) -> None:
        """Replace what stands between two operands; brackets that belong to an operand stay."""
        start, end = span
        text = self._source[start:end].decode()
        before = text[: len(text) - len(text.lstrip(" )\n"))]
        after = text[len(text.rstrip(" (\n")) :]
        self._add(left.end_lineno or left.lineno, start, end, f"{before or ' '}{new}{after or ' '}", kind)

    def _add(self, line: int, start: int, end: int, new: str, kind: str) -> None:
        old = self._source[start:end].decode()
        before = self._source[:start].rpartition(b"\n")[2].decode()
        behind = self._source[end:].partition(b"\n")[0].decode()
        self.found.append(Defect(line, start, end, old, new, kind, before, behind))

    def _between(self, left: ast.expr, right: ast.expr) -> tuple[int, int]:
        return self._span(left)[1], self._span(right)[0]

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()


def _has_effect(statement: ast.stmt) -> bool:
    """Whether a statement does something to somebody else, so that it can be left out, or come too early."""
    if isinstance(statement, ast.Expr):
        return _is_doing(statement.value)
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets)
    if isinstance(statement, ast.Return):
        return statement.value is None
    return isinstance(statement, _EFFECTS)


def _are_independent(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two assignments know nothing of one another, so that their order changes nothing."""
    if not isinstance(first, ast.Assign | ast.AugAssign) or not isinstance(second, ast.Assign | ast.AugAssign):
        return False
    if _calls(first.value) and _calls(second.value):
        return False
    return _ignores(first, second) and _ignores(second, first)


def _ignores(statement: ast.Assign | ast.AugAssign, other: ast.Assign | ast.AugAssign) -> bool:
    """Whether a statement neither reads nor sets the attributes that another one sets, nor lets a call do so."""
    used = {ast.unparse(node) for node in ast.walk(statement) if isinstance(node, ast.Name | ast.Attribute)}
    passed = {ast.unparse(node) for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    for target in other.targets if isinstance(other, ast.Assign) else [other.target]:
        if not isinstance(target, ast.Attribute) or ast.unparse(target) in used:
            return False
        if _calls(statement.value) and ast.unparse(target).partition(".")[0] in passed:
            return False
    return True


def _calls(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call | ast.Await) for node in ast.walk(value))


def _is_doing(value: ast.expr) -> bool:
    if isinstance(value, ast.Await):
        value = value.value
    if not isinstance(value, ast.Call):
        return False
    root: ast.expr = value.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return not (isinstance(root, ast.Name) and root.id in _TELLING) and not _is_super(value)


def _is_super(call: ast.Call) -> bool:
    """Whether it is super().__init__(...) or the like: without it nothing works at all."""
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)


def _is_textual(node: ast.BinOp) -> bool:
    """Whether one side is a text or a list: subtraction would only fail, which is no subtle defect."""
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, without those of its blocks, its annotation or what a raise tells."""
    if isinstance(statement, ast.Raise):
        return
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "handlers", "cases", "annotation"):
            continue
        if name == "items":  # of a with statement
            yield from (item.context_expr for item in value)
            continue
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.expr))


def _walk(expression: ast.expr) -> Iterator[ast.AST]:
    """Every node of an expression, but of texts with values in them and of calls that tell people something."""
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Call) and _is_telling(node):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def _is_telling(call: ast.Call) -> bool:
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in _TELLING
