"""docs/rule.md has every system property and every limit of the code; its example runs with those of other pages."""

import re
from pathlib import Path

import pytest

from hubweir.errors import ARGUMENT_ERROR
from hubweir.namespace.resource_path import fold
from hubweir.namespace.subscription_rule import SQL_LIMIT
from hubweir.topic import rule_action, rule_matching
from hubweir.topic.filtered_message import SYSTEM_PROPERTIES
from hubweir.topic.property_types import ID_LIMIT
from hubweir.topic.rule_action import parse_action
from hubweir.topic.sql_evaluate import STEP_LIMIT
from hubweir.topic.sql_parser import COMPARISONS, KEYWORDS
from hubweir.topic.sql_reader import DEPTH_LIMIT, NODE_LIMIT

PAGE = (Path(__file__).resolve().parents[2] / "docs/rule.md").read_text()
KIB = 1024


def names_behind(words: str) -> set[str]:
    """The names with a capital letter in the paragraph or list item that begins with these words."""
    paragraph = re.split(r"\n(?:\n|- )", PAGE.split(words)[1])[0]
    return {fold(name) for name in re.findall(r"\b[A-Z][A-Za-z]+\b", re.sub(r"\(.*?\)|\. .*", "", paragraph))}


def test_every_system_property_has_its_name_there() -> None:
    assert names_behind("Names behind `sys.`:") == SYSTEM_PROPERTIES


def test_those_that_can_be_set_are_named() -> None:
    settable = names_behind("- Of the system properties ") - {"timetolive"}
    for name in sorted(SYSTEM_PROPERTIES):
        try:
            parse_action(f"REMOVE sys.{name}", {})
        except Exception:
            assert name not in settable
        else:
            assert name in settable | {"timetolive", "scheduledenqueuetimeutc"}


@pytest.mark.parametrize(
    "text",
    [
        f"| characters | {SQL_LIMIT:,} |",
        f"| names, constants and operators | {NODE_LIMIT} |",
        f"inside one another | {DEPTH_LIMIT} |",
        f"beyond them it fails | {STEP_LIMIT:,} |",
        f"| SETs of an action | {rule_action.SET_LIMIT} |",
        f"at most {ID_LIMIT} characters",
        f"more than {rule_action.PROPERTY_LIMIT_BYTES // KIB} KiB",
        f"more than {rule_action.PROPERTIES_LIMIT_BYTES // KIB} KiB",
        f"`{rule_matching.FILTER_FAILED}` or `{rule_matching.ACTION_FAILED}`",
        f"`{rule_matching.RULE_NAME_PROPERTY}`",
        f"`{ARGUMENT_ERROR.symbol}` ({ARGUMENT_ERROR.http})",
    ],
)
def test_limits_and_names_are_those_of_the_code(text: str) -> None:
    assert text in re.sub(r"\s+", " ", PAGE)


def test_the_grammar_has_every_keyword_and_sign() -> None:
    grammar = PAGE.split("## SQL filters\n\n```\n")[1].split("```")[0]
    words = set(grammar.split())
    assert {word for word in KEYWORDS if not re.search(rf"\b{word}\b", grammar)} == set()
    assert words >= COMPARISONS
