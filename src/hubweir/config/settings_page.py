"""docs/settings.md, made from the table of settings: `python -m hubweir.config.settings_page > docs/settings.md`."""

from __future__ import annotations

import dataclasses
import typing

from hubweir.config.settings import LINES, CatalogSettings, names_of
from hubweir.config.sources import PREFIX, TYPES

# What the catalogs of the data folder keep; the others are this start's alone.
KEPT = names_of(CatalogSettings)

HEAD = f"""# Settings

Flags of `hubweir serve` win over environment variables, those over a TOML file (`--config FILE`, or the variable
`HUBWEIR_CONFIG`), that over a [`Config.json`](emulator_config.md), that over the defaults. In the environment a setting
is `{PREFIX}` and its name in capitals, lists are separated by commas: `{PREFIX}PORT=5671,5672`. In TOML the names stand
at the top level: `port = [5671, 5672]`.

Namespaces live in the data folder: their names and host names, which one is the default, profiles, keys, throughput
units. What a start says of them, by the settings marked ⁺, holds and is kept; what it does not say stays as the folder
has it, and the default below is for a new namespace. Whatever a start changes there, also what was changed while the
service ran, is told in a `note:` when it starts, with the flag, variable or file that says so. One setting loses: a key
that a `Config.json` gives a namespace wins over `key`, which is for all of them; where both differ a note names both.
More in [namespace.md](namespace.md).

This page is made from `src/hubweir/config/settings.py` and `src/hubweir/limits.py`.

| setting | type | default | range | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    return HEAD + "".join(_row(line) for line in LINES)


def _row(line: dataclasses.Field[object]) -> str:
    kind = TYPES[line.name]
    is_list = typing.get_origin(kind) is tuple
    name = {int: "number", str: "text", bool: "true or false"}[typing.get_args(kind)[0] if is_list else kind]
    kept = " ⁺" if line.name in KEPT else ""
    least, most = line.metadata["least"], line.metadata["most"]
    allowed = "" if least is None else f"{least} to {most}"
    return (
        f"| `{line.name}`{kept} | {'list of ' if is_list else ''}{name}{'s' if is_list else ''} | {_default(line)} "
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
