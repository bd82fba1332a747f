"""Words to tree: the grammar of filters, and of the expressions of actions. ("Subscription Rule SQL Filter Syntax")

    predicate  = conjunction { OR conjunction }
    conjunction = negation { AND negation }
    negation   = NOT negation | comparison
    comparison = sum [ ( = | <> | < | <= | > | >= ) sum | IS [NOT] NULL | [NOT] IN ( sum {, sum} )
                     | [NOT] LIKE sum [ESCAPE sum] ]
    sum        = product { ( + | - ) product }          product = signed { ( * | / | % ) signed }
    signed     = ( + | - ) signed | primary
    primary    = constant | @parameter | property | newid() | property(sum) | p(sum) | EXISTS ( property )
               | ( predicate )                          property = [ ( sys | user ) . ] name

Parentheses may hold a predicate or a value; each place that takes only one of them checks which it got. Parameters are
replaced by their values, so that what the tree says depends on the message alone. Every call that can nest is counted
against a limit of levels, every node against a limit of nodes: 10,000 parentheses are refused, and no stack ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hubweir.namespace.resource_path import fold
from hubweir.topic.like_pattern import BadPattern, parse_pattern
from hubweir.topic.sql_lexer import INT64_LIMIT, Token, TokenKind
from hubweir.topic.sql_reader import Node, SqlReader
from hubweir.topic.sql_syntax import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    Exists,
    Expression,
    In,
    IsNull,
    Like,
    NamedProperty,
    NewId,
    Not,
    Or,
    Predicate,
    PropertyNode,
    Sign,
    SystemProperty,
    UserProperty,
)
from hubweir.topic.sql_values import Value, value_of

COMPARISONS: Final = frozenset(("=", "<>", "<", "<=", ">", ">="))
KEYWORDS: Final = frozenset(("AND", "OR", "NOT", "IS", "NULL", "IN", "LIKE", "ESCAPE", "EXISTS", "TRUE", "FALSE"))
_CONSTANTS: Final[dict[str, Value]] = {"TRUE": True, "FALSE": False, "NULL": None}


def parse_filter(text: str, parameters: Mapping[str, Value]) -> Predicate:
    """The tree of a SQL filter. parameters: by name, with or without the @.

    Raises SqlError, which names the character and the word, what would be right, and the limit that is passed.
    """
    parser = Parser(text, parameters, KEYWORDS)
    start = parser.token
    tree = parser.as_predicate(parser.parse_any(), start)
    if parser.token.kind is not TokenKind.END:
        parser.refuse("AND, OR or the end of the filter is needed here")
    return tree


class Parser(SqlReader):
    """The grammar, rule by rule. The parser of actions shares it."""

    # Predicates

    def parse_any(self) -> Node:
        """A predicate or a value, whichever stands there."""
        start = self.token
        first = self._conjunction()
        if not self.at_keyword("OR"):
            return first
        operands = [self.as_predicate(first, start)]
        while self.take_keyword("OR"):
            start = self.token
            operands.append(self.as_predicate(self._conjunction(), start))
        return self.made(Or(tuple(operands)), start)

    def _conjunction(self) -> Node:
        start = self.token
        first = self._negation()
        if not self.at_keyword("AND"):
            return first
        operands = [self.as_predicate(first, start)]
        while self.take_keyword("AND"):
            start = self.token
            operands.append(self.as_predicate(self._negation(), start))
        return self.made(And(tuple(operands)), start)

    def _negation(self) -> Node:
        start = self.token
        if not self.take_keyword("NOT"):
            return self._comparison()
        self.enter(start)
        at = self.token
        operand = self.as_predicate(self._negation(), at)
        self.leave()
        return self.made(Not(operand), start)

    def _comparison(self) -> Node:
        start = self.token
        left = self._sum()
        middle = self.token
        symbol = self.take_sign(*COMPARISONS)
        if symbol:
            left, right = self._value(left, start), self._operand()
            return self.made(Comparison(symbol, left, right), middle)
        if self.take_keyword("IS"):
            negative = self.take_keyword("NOT")
            self.need_keyword("NULL")
            return self._perhaps_not(negative, IsNull(self._value(left, start)), middle)
        negative = self.take_keyword("NOT")
        if self.take_keyword("IN"):
            return self._perhaps_not(negative, In(self._value(left, start), self._choices()), middle)
        if self.take_keyword("LIKE"):
            return self._perhaps_not(negative, self._like(self._value(left, start)), middle)
        if negative:
            self.refuse("IN or LIKE is needed behind NOT")
        return left

    def _perhaps_not(self, negative: str, predicate: Predicate, at: Token) -> Predicate:
        predicate = self.made(predicate, at)
        return self.made(Not(predicate), at) if negative else predicate

    def _choices(self) -> tuple[Expression, ...]:
        self.need_sign("(")
        choices = [self._operand()]
        while self.take_sign(","):
            choices.append(self._operand())
        self.need_sign(")")
        return tuple(choices)

    def _like(self, operand: Expression) -> Like:
        start = self.token
        pattern = self._constant_text("a pattern")
        escape: str | None = ""
        if self.take_keyword("ESCAPE"):
            at_escape = self.token
            escape = self._constant_text("an escape character")
            if escape is not None and len(escape) != 1:
                self.refuse("an escape character is a text of one character", at_escape)
        if pattern is None or escape is None:
            return Like(operand, None)
        try:
            return Like(operand, parse_pattern(pattern, escape or None))
        except BadPattern:
            self.refuse("the pattern ends in its escape character, which has to stand before another one", start)

    def _constant_text(self, what: str) -> str | None:
        """A text, or a parameter that is one; None for one that is not there."""
        start = self.token
        operand = self._operand()
        if type(operand) is not Constant or not isinstance(operand.value, str | None):
            self.refuse(f"{what} is a text constant or a parameter with a text", start)
        return operand.value

    # Values

    def _operand(self) -> Expression:
        start = self.token
        return self._value(self._sum(), start)

    def parse_expression(self) -> Expression:
        """A value, as an action sets it."""
        return self._operand()

    def _sum(self) -> Node:
        start = self.token
        first = self._product()
        rest: list[tuple[str, Expression]] = []
        while symbol := self.take_sign("+", "-"):
            at = self.token
            rest.append((symbol, self._value(self._product(), at)))
        return self.made(Arithmetic(self._value(first, start), tuple(rest)), start) if rest else first

    def _product(self) -> Node:
        start = self.token
        first = self._signed()
        rest: list[tuple[str, Expression]] = []
        while symbol := self.take_sign("*", "/", "%"):
            at = self.token
            rest.append((symbol, self._value(self._signed(), at)))
        return self.made(Arithmetic(self._value(first, start), tuple(rest)), start) if rest else first

    def _signed(self) -> Node:
        start = self.token
        symbol = self.take_sign("+", "-")
        if not symbol:
            return self._primary()
        if self.token.kind is TokenKind.NUMBER:
            number = self.advance().value
            assert not isinstance(number, str)  # the kind says so
            return self._number(-number if symbol == "-" else number, start)
        self.enter(start)
        at = self.token
        operand = self._value(self._signed(), at)
        self.leave()
        return self.made(Sign(symbol, operand), start)

    def _primary(self) -> Node:
        token = self.advance()
        if token.kind is TokenKind.NUMBER:
            assert not isinstance(token.value, str)  # the kind says so
            return self._number(token.value, token)
        if token.kind is TokenKind.TEXT:
            return self.made(Constant(token.value), token)
        if token.kind is TokenKind.PARAMETER:
            return self.made(Constant(value_of(self.parameter(str(token.value)))), token)
        if token.kind is TokenKind.SIGN and token.text == "(":
            self.enter(token)
            inner = self.parse_any()
            self.need_sign(")")
            self.leave()
            return inner
        if token.kind is TokenKind.NAME:
            return self.made(UserProperty(fold(str(token.value)), str(token.value)), token)
        if token.kind is TokenKind.WORD:
            return self._word(token)
        self.refuse("a value is needed here", token)

    def _word(self, token: Token) -> Node:
        word = token.text.upper()
        if word in _CONSTANTS:
            return self.made(Constant(_CONSTANTS[word]), token)
        if word == "EXISTS":
            return self._exists(token)
        if word not in self.keywords and self.token.text == "(":
            return self._function(token)
        return self.made(self._property_behind(token), token)

    def _exists(self, token: Token) -> Exists:
        self.enter(token)
        self.need_sign("(")
        at = self.token
        subject = self._primary()
        if not isinstance(subject, UserProperty | SystemProperty | NamedProperty):
            self.refuse("EXISTS asks for a property", at)
        self.need_sign(")")
        self.leave()
        return self.made(Exists(subject), token)

    def _function(self, token: Token) -> Expression:
        name = token.text.lower()
        if name not in ("newid", "property", "p"):
            self.refuse("there is no such function; there are newid(), property(name) and p(name)", token)
        self.enter(token)
        self.need_sign("(")
        made = NewId() if name == "newid" else NamedProperty(self._operand())
        self.need_sign(")")
        self.leave()
        return self.made(made, token)

    def parse_property(self) -> PropertyNode:
        """A property by its name, as an action sets or removes it."""
        token = self.advance()
        if token.kind is TokenKind.NAME:
            return self.made(UserProperty(fold(str(token.value)), str(token.value)), token)
        if token.kind is not TokenKind.WORD:
            self.refuse("the name of a property is needed here", token)
        return self.made(self._property_behind(token), token)

    def _property_behind(self, token: Token) -> PropertyNode:
        """The property that a word begins: a name, or a scope with a point and a name behind it."""
        self._check_no_keyword(token)
        if not self.take_sign("."):
            return UserProperty(fold(token.text), token.text)
        scope = token.text.lower()
        if scope not in ("sys", "user"):
            self.refuse("the scopes are sys and user; a name with a point in it stands in [ ]", token)
        name = self.advance()
        if name.kind not in (TokenKind.WORD, TokenKind.NAME):
            self.refuse(f"the name of a property is needed behind {scope}.", name)
        if name.kind is TokenKind.WORD:
            self._check_no_keyword(name)
        make = SystemProperty if scope == "sys" else UserProperty
        return make(fold(str(name.value)), str(name.value))

    def _check_no_keyword(self, token: Token) -> None:
        if token.text.upper() in self.keywords:
            self.refuse("a keyword cannot stand here; a property of that name stands in [ ]", token)

    def _number(self, number: int | float, at: Token) -> Constant:
        if number == INT64_LIMIT and type(number) is int:
            self.refuse("it is out of range: an integer has 64 bits", at)
        return self.made(Constant(number), at)

    # Kinds of nodes

    def as_predicate(self, node: Node, at: Token) -> Predicate:
        """The node, when it is a predicate; SqlError at the word where it starts otherwise."""
        if isinstance(node, Predicate):
            return node
        self.refuse("a value stands where a condition is needed: compare it with something, as in a = TRUE", at)

    def _value(self, node: Node, at: Token) -> Expression:
        if isinstance(node, Expression):
            return node
        self.refuse("a condition stands where a value is needed", at)
