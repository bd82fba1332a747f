"""Settings as fields of a form: what each is called, how it is entered, and reading what was entered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.portal.form import Form

_DIGITS_LIMIT = 12
_SEQUENCE_DIGITS, _LONG_MAX = 19, 2**63 - 1


class FieldEntry(Enum):
    """How a field is entered. The value is what templates know it by."""

    TEXT = "text"
    LONG_TEXT = "long-text"
    NUMBER = "number"
    SPAN = "span"
    CHOICE = "choice"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class SettingField:
    """One setting. choices: pairs of value and label. is_fixed: only a new entity may be given it."""

    name: str
    label: str
    entry: FieldEntry
    help: str = ""
    choices: Sequence[tuple[str, str]] = ()
    is_fixed: bool = False

    def text(self, values: Form) -> str:
        """What is shown of a value."""
        value = values.get(self.name, "")
        if self.entry is FieldEntry.FLAG:
            return "Enabled" if value else "Disabled"
        return dict(self.choices).get(value, value) or "–"


def number(form: Form, name: str, label: str) -> int:
    """A whole number that was entered; ServiceError ARGUMENT_ERROR. label: names it in the text."""
    text = form.get(name, "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS_LIMIT:
        raise ServiceError(ARGUMENT_ERROR, f"{label} must be a whole number, such as 10.")
    return int(text)


def sequence_number(form: Form, name: str) -> int:
    """As `number`. That of a partitioned entity has its fragment in front, and up to 19 digits."""
    text = form.get(name, "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > _SEQUENCE_DIGITS or int(text) > _LONG_MAX:
        raise ServiceError(ARGUMENT_ERROR, "The sequence number must be a whole number, such as 10.")
    return int(text)


def flag(form: Form, name: str) -> bool:
    """Whether a box is ticked: browsers send those alone."""
    return bool(form.get(name))


def choice(form: Form, field: SettingField) -> str:
    """The value that was chosen; ServiceError ARGUMENT_ERROR for one that the field does not have."""
    value = form.get(field.name, "")
    if value not in dict(field.choices):
        allowed = ", ".join(label for _, label in field.choices)
        raise ServiceError(ARGUMENT_ERROR, f"{field.label} must be one of {allowed}.")
    return value


def flag_value(value: bool) -> str:
    """As a form holds it."""
    return "on" if value else ""
