"""Every link from a page to a file, or to a heading of a page, leads there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: str) -> set[str]:
    """The headings of a page as links name them: lower case, blanks as hyphens, other signs left out."""
    without_code = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(pages: list[Path]) -> list[str]:
    found = []
    for page in pages:
        for target, anchor in LINK.findall(page.read_text()):
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path.read_text())):
                found.append(f"{page.name}: {target}{'#' if anchor else ''}{anchor}")
    return found


def test_links_lead_somewhere() -> None:
    assert len(PAGES) > 20
    assert not dead_links(PAGES)


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    there = "# One `two`\n\n## What is it?\n\n```console\n# no heading\n```\n[a](page.md#one-two) [b](#what-is-it) [c](https://x/y)\n"
    page.write_text(f"{there}[d](gone.md) [e](#no-heading) [f](page.md#gone)\n")
    assert dead_links([page]) == ["page.md: gone.md", "page.md: #no-heading", "page.md: page.md#gone"]
