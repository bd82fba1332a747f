"""Texts to words, and the places of what is no word."""

import pytest

from hubweir.errors import ARGUMENT_ERROR
from hubweir.topic.sql_lexer import SqlError, TokenKind, tokens_of

WORD, NAME, PARAMETER = TokenKind.WORD, TokenKind.NAME, TokenKind.PARAMETER
NUMBER, TEXT, SIGN, END = TokenKind.NUMBER, TokenKind.TEXT, TokenKind.SIGN, TokenKind.END


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\r\n\f\v", []),
        ("color", [(WORD, "color")]),
        ("_a9_ é漢1", [(WORD, "_a9_"), (WORD, "é漢1")]),
        ("a@b", [(WORD, "a@b")]),
        ("@limit", [(PARAMETER, "limit")]),
        ("[a b]", [(NAME, "a b")]),
        ("[a]]b]", [(NAME, "a]b")]),
        ("[]]]", [(NAME, "]")]),
        ('"a ""b"""', [(NAME, 'a "b"')]),
        ("'it''s'", [(TEXT, "it's")]),
        ("''", [(TEXT, "")]),
        ("''''", [(TEXT, "'")]),
        ("'a\nb'", [(TEXT, "a\nb")]),
        ("0 12 007", [(NUMBER, 0), (NUMBER, 12), (NUMBER, 7)]),
        ("9223372036854775808", [(NUMBER, 2**63)]),
        ("00000000000000000000000000001", [(NUMBER, 1)]),
        ("1.5 .5 5. 2E3 2e-3 1.5E+2", [(NUMBER, x) for x in (1.5, 0.5, 5.0, 2000.0, 0.002, 150.0)]),
        ("a.b", [(WORD, "a"), (SIGN, "."), (WORD, "b")]),
        ("<><=>=!=<>", [(SIGN, x) for x in ("<>", "<=", ">=", "<>", "<>")]),
        ("=<>", [(SIGN, "="), (SIGN, "<>")]),
        ("+-*/%(),.;", [(SIGN, x) for x in "+-*/%(),.;"]),
        ("a=-1", [(WORD, "a"), (SIGN, "="), (SIGN, "-"), (NUMBER, 1)]),
    ],
)
def test_words_of_a_text(text: str, expected: list[tuple[TokenKind, object]]) -> None:
    found = tokens_of(text)
    assert [(token.kind, token.value) for token in found] == [*expected, (END, "")]
    assert all(text.startswith(token.text, token.at) for token in found)
    assert found[-1].at == len(text)


def test_integers_and_doubles_have_their_own_types() -> None:
    assert [type(token.value) for token in tokens_of("1 1.0 1E0")] == [int, float, float, str]


@pytest.mark.parametrize(
    ("text", "at", "token"),
    [
        ("a = 'b", 4, "'b"),
        ("a = 'b''", 4, "'b''"),
        ("[a", 0, "[a"),
        ("[a]]", 0, "[a]]"),
        ('"a', 0, '"a'),
        ("a = []", 4, "[]"),
        ('a = ""', 4, '""'),
        ("a = 1b", 4, "1b"),
        ("a = 1.5_", 4, "1.5_"),
        ("a = 1E", 4, "1E"),
        ("a = 1E+", 4, "1E+"),
        ("a = 9223372036854775809", 4, "9223372036854775809"),
        ("a = 1" + "0" * 400, 4, "1" + "0" * 400),
        ("a = 1E999", 4, "1E999"),
        ("a = @", 4, "@"),
        ("a ? b", 2, "?"),
        ("a = `b`", 4, "`"),
        ("a \0", 2, "\0"),
        ("a = 'b' ]", 8, "]"),
        ("a = ١", 4, "١"),  # a digit of another script is no number
        ("a ! b", 2, "!"),
    ],
)
def test_what_is_no_word_is_refused_with_its_place(text: str, at: int, token: str) -> None:
    with pytest.raises(SqlError) as refused:
        tokens_of(text)
    assert (refused.value.at, refused.value.token, refused.value.condition) == (at, token, ARGUMENT_ERROR)
    assert f"at character {at + 1}" in refused.value.text
    assert refused.value.text.isprintable()
