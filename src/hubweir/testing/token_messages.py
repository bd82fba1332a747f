"""Messages that are the tokens of a ledger (token_ledger.py): each says its token, and the move that brought it."""

from __future__ import annotations

from collections.abc import Mapping

from hubweir.client.queue_client import QueueClient
from hubweir.testing.seen_messages import left_in
from hubweir.testing.token_ledger import TokenPlace


def token_body(token: int, move: int) -> bytes:
    """The body of the message that is this token, brought by this move; 0: it begins there."""
    return b"%d|%d" % (token, move)


def token_in(body: bytes | None) -> tuple[int, int]:
    """The token and the move of a body that token_body made."""
    token, move = (body or b"").split(b"|")
    return int(token), int(move)


async def tokens_left(client: QueueClient, places: Mapping[str, str]) -> list[tuple[int, TokenPlace]]:
    """All tokens that are anywhere, dead letters too. places: of each entity, the path that is received from."""
    found = []
    for entity, path in places.items():
        for _, _, body, _ in await left_in(client, path):
            token, move = token_in(body)
            found.append((token, TokenPlace(entity, move)))
    return found
