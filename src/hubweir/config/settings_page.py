"""docs/settings.md, made from the table of settings: `python -m hubweir.config.settings_page > docs/settings.md`."""

from __future__ import annotations

import dataclasses
import typing

from hubweir.config.settings import Settings
from hubweir.config.sources import PREFIX, TYPES

HEAD = f"""# Settings

Flags of `hubweir serve` win over environment variables, those over a TOML file (`--config FILE`, or the variable
`HUBWEIR_CONFIG`), that over the defaults. In the environment a setting is `{PREFIX}` and its name in capitals, lists
are separated by commas: `{PREFIX}PORT=5671,5672`. In TOML the names stand at the top level: `port = [5671, 5672]`.

This page is made from `src/hubweir/config/settings.py`.

| setting | type | default | range | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    return HEAD + "".join(_row(line) for line in dataclasses.fields(Settings))


def _row(line: dataclasses.Field[object]) -> str:
    kind = TYPES[line.name]
    is_list = typing.get_origin(kind) is tuple
    name = {int: "number", str: "text", bool: "true or false"}[typing.get_args(kind)[0] if is_list else kind]
    least, most = line.metadata["least"], line.metadata["most"]
    allowed = "" if least is None else f"{least} to {most}"
    return (
        f"| `{line.name}` | {'list of ' if is_list else ''}{name}{'s' if is_list else ''} | {_default(line)} "
        f"| {allowed} | {line.metadata['meaning']} |\n"
    )


def _default(line: dataclasses.Field[object]) -> str:
    value = line.default
    if isinstance(value, tuple):
        return ", ".join(f"`{entry}`" for entry in value) or "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" else "none"


if __name__ == "__main__":
    print(page(), end="")
