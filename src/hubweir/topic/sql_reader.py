"""The words of one SQL text in turn, for its parser, and the limits on what the parser makes of them.

Whatever is wrong is a SqlError that names the character and the word: refuse() says it of the word that comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn, TypeVar

from hubweir.namespace.resource_path import fold
from hubweir.namespace.subscription_rule import SQL_LIMIT
from hubweir.topic.sql_lexer import SqlError, Token, TokenKind, tokens_of
from hubweir.topic.sql_syntax import Expression, Predicate
from hubweir.topic.sql_values import Value

Node = Expression | Predicate

# Safety limits, besides that of characters. No settings: what was legal when a rule was made is legal when it is read
# again, at the next start. A constant and a comma take two characters: of what has SQL_LIMIT characters only lists of
# constants with one digit each meet the first of them.
NODE_LIMIT: Final = 512
# Parentheses, signs and NOTs inside one another; people write two or three.
DEPTH_LIMIT: Final = 16

N = TypeVar("N", bound=Node)


class SqlReader:
    """Goes through the words of one text, and counts what the parser makes of them."""

    def __init__(self, text: str, parameters: Mapping[str, Value], keywords: frozenset[str]) -> None:
        if len(text) > SQL_LIMIT:
            why = f"it has {len(text)} characters, and at most {SQL_LIMIT} are allowed; use several rules"
            raise SqlError(SQL_LIMIT, text[SQL_LIMIT:], why)
        self._tokens = tokens_of(text)
        self._next = 0
        self._depth = 0
        self._node_count = 0
        self.keywords = keywords
        self._parameters = {fold(name.removeprefix("@")): value for name, value in parameters.items()}

    @property
    def token(self) -> Token:
        """The word that comes next; END again and again at the end."""
        return self._tokens[self._next]

    def advance(self) -> Token:
        """Take the word that comes next."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._next += 1
        return token

    def refuse(self, why: str, token: Token | None = None) -> NoReturn:
        """Say that the word, or the one that comes next, is wrong."""
        wrong = self.token if token is None else token
        raise SqlError(wrong.at, wrong.text, why)

    def take_keyword(self, *words: str) -> str:
        """The keyword that comes next, when it is one of these; "" and nothing taken otherwise."""
        word = self.token.text.upper()
        if word not in words:
            return ""
        self._next += 1
        return word

    def take_sign(self, *signs: str) -> str:
        """The same for signs."""
        token = self.token
        if token.kind is not TokenKind.SIGN or token.value not in signs:
            return ""
        self._next += 1
        return str(token.value)

    def need_sign(self, sign: str) -> None:
        """Take this sign; SqlError when another word comes next."""
        if not self.take_sign(sign):
            self.refuse(f"{sign} is needed here")

    def need_keyword(self, word: str) -> None:
        """Take this keyword; SqlError when another word comes next."""
        if not self.take_keyword(word):
            self.refuse(f"{word} is needed here")

    def parameter(self, name: str) -> Value:
        """The value of a parameter; None when the rule has none of that name."""
        return self._parameters.get(fold(name))

    def at_keyword(self, word: str) -> bool:
        """Whether this keyword comes next."""
        return self.token.text.upper() == word

    def enter(self, at: Token) -> None:
        """Go one level deeper, until leave; SqlError when that is too deep."""
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            self.refuse(
                f"parentheses, signs and NOTs nest deeper than {DEPTH_LIMIT} levels; write it flatter, "
                "or use several rules",
                at,
            )

    def leave(self) -> None:
        """Come back up."""
        self._depth -= 1

    def made(self, node: N, at: Token) -> N:
        """The node, counted; SqlError when it is one too many."""
        self._node_count += 1
        if self._node_count > NODE_LIMIT:
            self.refuse(f"it has more than {NODE_LIMIT} names, constants and operators; use several rules", at)
        return node
