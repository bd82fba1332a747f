"""docs/errors.md is the error table, row for row. To remake it: python tests/documents/test_errors_page.py"""

from pathlib import Path

from hubweir.errors import CONDITIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
START, END = "<!-- conditions: from src/hubweir/errors.py -->\n", "<!-- end of conditions -->"


def rows() -> str:
    lines = ["| condition | `$management` | HTTP | again? | what it means |", "|---|---|---|---|---|"]
    for row in CONDITIONS:
        again = "yes" if row.retriable else "no"
        lines.append(f"| `{row.symbol}` | {row.management} | {row.http} | {again} | {row.meaning} |")
    return "\n".join(lines) + "\n"


def remade(page: str) -> str:
    before, rest = page.split(START)
    return before + START + rows() + END + rest.split(END)[1]


def test_page_has_every_condition_as_the_code_has_it() -> None:
    page = PAGE.read_text()
    assert remade(page) == page


if __name__ == "__main__":
    PAGE.write_text(remade(PAGE.read_text()))
