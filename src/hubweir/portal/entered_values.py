"""Values that a person entered in a form of settings, told from those that the page showed when it was opened.

A browser sends every field of a form, those too that nobody touched, and a page may have been open for hours. So a form
has with it what it showed, in one hidden field (the macro `seen_field` of templates/_macros.html). A field that comes
back as it was shown is as the entity has it by now; what was touched holds, whoever else touched it meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection

from hubweir.portal.form import Form, form_fields

SEEN = "seen"


def entered_values(form: Form, now: Form, *, fixed: Collection[str] = ()) -> dict[str, str]:
    """The values of a form: now, what the entity has, with what was touched in its place.

    fixed: names that no field is for. A form that says nothing of what it showed was touched everywhere. Raises
    ServiceError ARGUMENT_ERROR.
    """
    seen = form_fields(form.get(SEEN, "").encode())
    # A box that is not ticked is not sent, so what is missing is empty.
    entered = {name: form.get(name, "") for name in now if name not in fixed}
    touched = {name: value for name, value in entered.items() if name not in seen or not _is_same(value, seen[name])}
    return {**now, **touched}


def _is_same(entered: str, shown: str) -> bool:
    """Browsers write line breaks of their own, and drop one at the start of a text."""
    return entered.strip().splitlines() == shown.strip().splitlines()
