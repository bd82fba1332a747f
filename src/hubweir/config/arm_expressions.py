"""Expressions of Azure Resource Manager's templates: `[concat(parameters('name'), '-hub')]`, as much as names and
settings of namespaces are written with.

    expression := call { "." name | "[" expression "]" } | text | number
    call       := name "(" [ expression { "," expression } ] ")"

Texts stand in single quotes, a quote in them twice. `[[` at the start of a value is a `[` that begins no expression.
What depends on resources that are not here (reference, list…) is refused, by its name. (Template syntax and functions)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubweir.config.arm_functions import FUNCTIONS, BadExpression, kind_of, truth

DEPTH = 64
# Of one loop; Azure deploys 800 resources at most.
COPIES_LIMIT = 1_000
_TOKENS = re.compile(r"\s*(?:('(?:[^']|'')*')|(-?\d+)|([A-Za-z_][A-Za-z0-9_]*)|([()\[\],.]))")


@dataclass(frozen=True, slots=True)
class ExpressionCall:
    """A function, or a step into a value: `.name` is the function "." with a text."""

    name: str
    arguments: tuple[Any, ...]


def parse_expression(text: str) -> Any:
    """What stands between the brackets, as a ExpressionCall, a text or a number. Raises BadExpression."""
    tokens, at = [], 0
    while text[at:].strip():
        found = _TOKENS.match(text, at)
        if found is None:
            raise BadExpression(f"the expression [{text[:128]}] cannot be read at {text[at : at + 20].strip()!r}")
        tokens.append(found)
        at = found.end()
    parser = _ExpressionParser(text, [token.group(token.lastindex or 0) for token in tokens])
    value = parser.expression(0)
    if parser.left:
        raise parser.wrong()
    return value


class _ExpressionParser:
    def __init__(self, text: str, tokens: Sequence[str]) -> None:
        self._text, self._tokens, self._at = text, tokens, 0

    @property
    def left(self) -> bool:
        return self._at < len(self._tokens)

    def wrong(self) -> BadExpression:
        found = repr(self._tokens[self._at]) if self.left else "its end"
        return BadExpression(f"the expression [{self._text[:128]}] cannot be read at {found}")

    def expression(self, depth: int) -> Any:
        if depth > DEPTH or not self.left:
            raise self.wrong()
        token = self._take()
        if token.startswith("'"):
            value: Any = token[1:-1].replace("''", "'")
        elif token.lstrip("-").isdigit():
            value = int(token)
        elif token[0].isalpha() or token[0] == "_":
            value = ExpressionCall(token.lower(), self._arguments(depth))
        else:
            self._at -= 1
            raise self.wrong()
        steps = 0
        while self.left and self._tokens[self._at] in (".", "["):
            steps += 1
            if steps > DEPTH:
                raise self.wrong()
            if self._take() == ".":
                if not self.left:
                    raise self.wrong()
                value = ExpressionCall(".", (value, self._take()))
            else:
                value = ExpressionCall(".", (value, self.expression(depth + 1)))
                self._expect("]")
        return value

    def _arguments(self, depth: int) -> tuple[Any, ...]:
        if not self.left or self._tokens[self._at] != "(":
            raise self.wrong()
        self._take()
        arguments: list[Any] = []
        while self.left and self._tokens[self._at] != ")":
            arguments.append(self.expression(depth + 1))
            if self.left and self._tokens[self._at] == ",":
                self._take()
            elif not self.left or self._tokens[self._at] != ")":
                raise self.wrong()
        self._expect(")")
        return tuple(arguments)

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if not self.left or self._tokens[self._at] != token:
            raise self.wrong()
        self._at += 1


class TemplateScope:
    """What expressions of one template see. parameters: their values. variables: evaluated when they are asked for.

    loops: by name, the index of the copy that is being made; "": of the innermost.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        variables: Mapping[str, Any],
        *,
        group: str,
        loops: Mapping[str, int] | None = None,
    ) -> None:
        self._parameters = {name.lower(): value for name, value in parameters.items()}
        self._variables = {name.lower(): value for name, value in variables.items()}
        for loop in _loops(self._variables.pop("copy", [])):
            self._variables[str(loop.get("name")).lower()] = _VariableLoop(loop)
        self._group = group
        self._loops = dict(loops or {})
        self._depth = 0

    def in_copy(self, name: str, index: int) -> TemplateScope:
        """The same inside the copy of a loop."""
        inside = TemplateScope(self._parameters, self._variables, group=self._group, loops=self._loops)
        inside._loops.update({name.lower(): index, "": index})
        inside._depth = self._depth
        return inside

    def copies(self, loop: Mapping[str, Any]) -> Iterator[TemplateScope]:
        """A scope for each copy that a loop makes. loop: its name and count. Raises BadExpression."""
        name, count = str(loop.get("name", "")), self.value(loop.get("count"))
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COPIES_LIMIT:
            raise BadExpression(f"the loop {name!r} has the count {kind_of(count)}; 0 to {COPIES_LIMIT} are allowed")
        for index in range(count):
            yield self.in_copy(name, index)

    def value(self, written: Any) -> Any:
        """A value of the template with its expressions evaluated, whatever it holds. Raises BadExpression."""
        if isinstance(written, str):
            if written.startswith("[["):
                return written[1:]
            if written.startswith("[") and written.endswith("]"):
                return self._evaluate(parse_expression(written[1:-1]))
            return written
        if isinstance(written, dict):
            loops = _loops(written["copy"]) if isinstance(written.get("copy"), list) else []
            made = {
                str(self.value(name)): self.value(each) for name, each in written.items() if not loops or name != "copy"
            }
            return made | {str(loop.get("name")): self._looped(loop) for loop in loops}
        if isinstance(written, _VariableLoop):
            return self._looped(written.loop)
        if isinstance(written, list):
            return [self.value(inside) for inside in written]
        return written

    def _looped(self, loop: Mapping[str, Any]) -> list[Any]:
        """What a loop in an object, or of a variable, makes: a list."""
        return [inside.value(loop.get("input")) for inside in self.copies(loop)]

    def _evaluate(self, expression: Any) -> Any:
        if not isinstance(expression, ExpressionCall):
            return expression
        name = expression.name
        if name == "if":
            return self._if(expression.arguments)
        arguments = [self._evaluate(each) for each in expression.arguments]
        known: dict[str, Callable[[], Any]] = {
            "parameters": lambda: self._named("parameter", self._parameters, arguments),
            "variables": lambda: self._variable(arguments),
            "copyindex": lambda: self._index(arguments),
            "resourcegroup": lambda: self._resource_group(),
            "subscription": lambda: {"subscriptionId": "subscription", "tenantId": "tenant", "displayName": "hubweir"},
            "deployment": lambda: {"name": "hubweir"},
            "environment": lambda: {"name": "hubweir", "suffixes": {"storage": "core.windows.net"}},
        }
        if name in known:
            return known[name]()
        function = FUNCTIONS.get(name)
        if function is None:
            raise BadExpression(f"the function {name} is not known here: {', '.join(sorted(FUNCTIONS))} are")
        try:
            return function(*arguments)
        except BadExpression as error:
            reason = f": {error}"
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ZeroDivisionError):
            reason = ""  # Python's words may quote a value
        kinds = ", ".join(map(kind_of, arguments)) or "nothing"
        raise BadExpression(f"{_spelled(expression)} cannot be done with {kinds}{reason}")

    def _if(self, arguments: Sequence[Any]) -> Any:
        if len(arguments) != 3:
            raise BadExpression("if takes a condition and two values")
        return self._evaluate(arguments[1 if truth(self._evaluate(arguments[0])) else 2])

    def _named(self, what: str, values: Mapping[str, Any], arguments: Sequence[Any]) -> Any:
        name = self._one_name(what, arguments)
        if name.lower() not in values:
            raise BadExpression(f"the {what} {name!r} has no value: give it by --parameter {name}=VALUE")
        return values[name.lower()]

    def _one_name(self, what: str, arguments: Sequence[Any]) -> str:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise BadExpression(f"a {what} is asked for by one name, in quotes")
        return arguments[0]

    def _variable(self, arguments: Sequence[Any]) -> Any:
        if self._depth > DEPTH:
            raise BadExpression("variables stand for one another in a circle")
        name = self._one_name("variable", arguments)
        if name.lower() not in self._variables:
            raise BadExpression(f"there is no variable {name!r} in the template")
        self._depth += 1
        try:
            return self.value(self._variables[name.lower()])
        finally:
            self._depth -= 1

    def _index(self, arguments: Sequence[Any]) -> int:
        name, offset = "", 0
        for argument in arguments:
            if isinstance(argument, str):
                name = argument.lower()
            elif isinstance(argument, int):
                offset = argument
            else:
                raise BadExpression("copyIndex takes the name of a loop and an offset")
        if name not in self._loops:
            raise BadExpression("copyIndex stands outside of a loop")
        return self._loops[name] + offset

    def _resource_group(self) -> dict[str, Any]:
        return {
            "name": self._group,
            "location": "local",
            "id": f"/subscriptions/subscription/resourceGroups/{self._group}",
        }


@dataclass(frozen=True, slots=True)
class _VariableLoop:
    """A variable that a loop makes: its name, its count, and the input of each copy."""

    loop: Mapping[str, Any]


def _loops(written: Any) -> list[Mapping[str, Any]]:
    if not isinstance(written, list) or not all(isinstance(each, dict) for each in written):
        raise BadExpression("a loop of properties or variables is a list of objects with name, count and input")
    return written


def _spelled(call: ExpressionCall) -> str:
    """How a call begins in the template; a step with its name, where that is written out."""
    return f"the step .{call.arguments[1]}" if call.name == "." and isinstance(call.arguments[1], str) else call.name
