"""Trees of filters, drawn at random, and the text of each: what a reader of the grammar would write for it.

The printer knows nothing of the parser: it puts parentheses where ranks ask for them, and in some places besides.
"""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from hubweir.namespace.resource_path import fold
from hubweir.topic.like_pattern import parse_pattern
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
    Sign,
    SystemProperty,
    UserProperty,
)

# A pattern's tree does not say what text it came from.
PATTERNS = ("", "%", "a", "a%", "%a", "%b%", "_", "a_", "%a_b%", "a%b", "%%")
_PATTERN_TEXTS = {parse_pattern(text): text for text in PATTERNS}


def user(name: str) -> UserProperty:
    return UserProperty(fold(name), name)


def system(name: str) -> SystemProperty:
    return SystemProperty(fold(name), name)


def text_of_value(value: object) -> str:
    if value is None:
        return "NULL"
    if type(value) is bool:
        return str(value).upper()
    if type(value) is str:
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def text_of_expression(node: Expression, rank: int = 0) -> str:
    """rank: 1 where an operand of + stands, 2 of *, 3 of a sign."""
    if isinstance(node, Constant):
        return text_of_value(node.value)
    if isinstance(node, UserProperty):
        return "user.[" + node.spelling.replace("]", "]]") + "]"
    if isinstance(node, SystemProperty):
        return "sys." + node.spelling
    if isinstance(node, NamedProperty):
        return f"property({text_of_expression(node.name)})"
    if isinstance(node, NewId):
        return "NewId()"
    if isinstance(node, Sign):
        # A number behind a sign would become one constant.
        return f"{node.symbol} ({text_of_expression(node.operand)})"
    assert isinstance(node, Arithmetic)
    own = 1 if node.rest[0][0] in "+-" else 2
    parts = [text_of_expression(node.first, own + 1)]
    for symbol, operand in node.rest:
        parts += [symbol, text_of_expression(operand, own + 1)]
    text = " ".join(parts)
    return f"({text})" if rank > own else text


def text_of_predicate(node: Predicate, rank: int = 0) -> str:
    """rank: 1 where an operand of OR stands, 2 of AND, 3 of NOT."""
    if isinstance(node, Or):
        text = " OR ".join(text_of_predicate(operand, 1) for operand in node.operands)
        return f"({text})" if rank >= 1 else text
    if isinstance(node, And):
        text = " and ".join(text_of_predicate(operand, 2) for operand in node.operands)
        return f"({text})" if rank >= 2 else text
    if isinstance(node, Not):
        return f"NOT {text_of_predicate(node.operand, 3)}"
    if isinstance(node, Comparison):
        return f"{text_of_expression(node.left)}{node.symbol}{text_of_expression(node.right)}"
    if isinstance(node, IsNull):
        return f"{text_of_expression(node.operand)} IS NULL"
    if isinstance(node, In):
        return f"{text_of_expression(node.operand)} IN ({', '.join(map(text_of_expression, node.choices))})"
    if isinstance(node, Like):
        pattern = "NULL" if node.pattern is None else text_of_value(_PATTERN_TEXTS[node.pattern])
        return f"{text_of_expression(node.operand)} Like {pattern}"
    assert isinstance(node, Exists)
    return f"EXISTS({text_of_expression(node.subject)})"


def predicates(
    values: st.SearchStrategy[object],
    names: Iterable[Expression],
    *,
    with_failures: bool = False,
) -> st.SearchStrategy[Predicate]:
    """Trees over these constants and properties. with_failures: with nodes whose evaluation may fail."""
    constants = values.map(Constant)
    leaves: st.SearchStrategy[Expression] = st.sampled_from(list(names)) | constants
    subjects = st.sampled_from([name for name in names if isinstance(name, UserProperty | SystemProperty)])
    if with_failures:
        leaves = leaves | st.sampled_from([system("Nothing"), NamedProperty(Constant("a")), NewId()])
    symbols = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])

    def deeper(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        signs = st.builds(Sign, st.sampled_from("+-"), inner)
        chains = st.sampled_from(["+-", "*/%"]).flatmap(
            lambda rank: st.builds(
                Arithmetic,
                inner,
                st.lists(st.tuples(st.sampled_from(rank), inner), min_size=1, max_size=3).map(tuple),
            )
        )
        return signs | chains

    operands = st.recursive(leaves, deeper, max_leaves=4) if with_failures else leaves
    patterns = st.sampled_from([None, *map(parse_pattern, PATTERNS)])
    simple: st.SearchStrategy[Predicate] = st.one_of(
        st.builds(Comparison, symbols, operands, operands),
        st.builds(Comparison, symbols, leaves, constants),
        st.builds(IsNull, operands),
        st.builds(In, operands, st.lists(leaves, min_size=1, max_size=3).map(tuple)),
        st.builds(In, leaves, st.lists(constants, min_size=1, max_size=3).map(tuple)),
        st.builds(Like, operands, patterns),
        st.builds(Exists, subjects),
    )
    chain = st.lists
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, chain(inner, min_size=2, max_size=3).map(tuple)),
            st.builds(Or, chain(inner, min_size=2, max_size=3).map(tuple)),
        ),
        max_leaves=8,
    )
