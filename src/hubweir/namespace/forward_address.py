"""Destinations of forwarding as clients write them: a URI of any scheme and host, or a bare name.

The text is kept letter for letter, because clients compare it; the name of the entity is read out of it at need.
"""

from __future__ import annotations

from hubweir.errors import ARGUMENT_ERROR, NOT_FOUND, ServiceError
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.error_text import entity_uri, printable
from hubweir.namespace.resource_path import IllegalPath, parse_path

# A URI with the longest name, each character an escape.
FORWARD_LIMIT = 1_024


def forward_name(text: str) -> str:
    """The name of the entity that a text leads to, whether it exists or not. Raises ServiceError ARGUMENT_ERROR."""
    try:
        segments = parse_path(text).segments if len(text) <= FORWARD_LIMIT else ()
    except IllegalPath:
        segments = ()
    if not segments:
        raise ServiceError(ARGUMENT_ERROR, f"{printable(text)!r} is no address of a queue or topic.")
    return "/".join(segments)


def forward_uri(text: str, host: str) -> str:
    """The text as clients get it back: a bare name with the namespace's host in front, everything else as it came."""
    return text if "://" in text or not text else f"sb://{host}/{text.removeprefix('/')}"


def check_forward(title: str, setting: str, text: str, context: ChangeContext) -> None:
    """Raise ServiceError when a destination is no address, or no queue or topic is there."""
    if not text:
        return
    name = forward_name(text)
    if not context.takes_messages(name):
        what = f"{title} cannot forward: {setting} names '{entity_uri(context.host, name)}'"
        raise ServiceError(NOT_FOUND, f"{what}, and there is no queue or topic of that name. Create it first.")
