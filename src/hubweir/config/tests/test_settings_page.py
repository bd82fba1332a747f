from pathlib import Path

from hubweir.config.settings_page import KEPT, page
from hubweir.config.sources import TYPES

PAGE = Path(__file__).resolve().parents[4] / "docs/settings.md"


def test_the_page_says_what_the_table_says() -> None:
    assert PAGE.read_text() == page(), "run: ./run python -m hubweir.config.settings_page > docs/settings.md"


def test_every_setting_has_its_line() -> None:
    for name in TYPES:
        assert page().count(f"| `{name}`{' ⁺' if name in KEPT else ''} |") == 1
