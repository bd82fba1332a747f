"""Requests to a queue's management node and their answers: AMQP maps in and out.

Clients are particular about types: keys are strings, numbers and times come in arrays of one type, tokens are uuids in
RFC order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from uuid import UUID

from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Timestamp
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.amqp.settlements import encode_properties, text_of_detail
from hubweir.kernels import encode_message, message_tokens
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK
from hubweir.queue.settle_outcome import TOKEN_BYTES, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode

OUTCOMES = {
    "completed": SettleOutcome.COMPLETE,
    "abandoned": SettleOutcome.ABANDON,
    "suspended": SettleOutcome.DEAD_LETTER,
    "defered": SettleOutcome.DEFER,
}
# Of a request: what one answer may be asked for.
ENTRIES_LIMIT = 4_096
SETTLE_MODES = {0: ReceiveMode.RECEIVE_AND_DELETE, 1: ReceiveMode.PEEK_LOCK}


class Asked:
    """The map of a request. Every method raises ServiceError ARGUMENT_ERROR for what is missing or of another type."""

    def __init__(self, values: dict[str, object]) -> None:
        self._values = values

    def value(self, name: str) -> object:
        """The entry as it came; None: there is none."""
        return self._values.get(name)

    def number(self, name: str, *, least: int = 0) -> int:
        """A whole number of 64 bits, of any integer type."""
        value = self.optional_number(name)
        if value is None or value < least:
            raise _wrong(name, f"a whole number from {least} on")
        return value

    def optional_number(self, name: str) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
            raise _wrong(name, "a whole number")
        return int(value)

    def numbers(self, name: str) -> array[int]:
        """Sequence numbers, one at least."""
        found = self._entries(name)
        if not all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**63 for each in found):
            raise _wrong(name, "an array of sequence numbers")
        return array("q", [int(each) for each in found if isinstance(each, int)])

    def tokens(self, name: str) -> bytes:
        """Lock tokens, one at least, as brokers take them."""
        found = self._entries(name)
        if not all(isinstance(each, UUID) for each in found):
            raise _wrong(name, "an array of uuids")
        return b"".join(each.bytes for each in found if isinstance(each, UUID))

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise _wrong(name, "a string")
        return None if value is None else str(value)

    def session_id(self) -> str:
        """The session that the request is about; "" is one, too."""
        value = self.text("session-id")
        if value is None:
            raise _wrong("session-id", "a string")
        return value

    def binary(self, name: str) -> bytes | None:
        value = self._values.get(name)
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong(name, "a binary, or null")
        return None if value is None else bytes(value)

    def receive_mode(self, name: str) -> ReceiveMode:
        found = SETTLE_MODES.get(self.number(name))
        if found is None:
            raise _wrong(name, "0 (receive and delete) or 1 (peek and lock)")
        return found

    def messages(self, name: str) -> list[bytes]:
        """Encoded messages, one at least, of a list of maps."""
        messages = [each.get("message") if isinstance(each, dict) else None for each in self._entries(name)]
        if not all(isinstance(each, bytes | bytearray | memoryview) for each in messages):
            raise _wrong(name, "a list of maps with a binary 'message' each")
        return [bytes(each) for each in messages if isinstance(each, bytes | bytearray | memoryview)]

    def settlement(self) -> tuple[SettleOutcome, SettleDetails | None]:
        """The outcome that is asked for, and what it says besides."""
        outcome = OUTCOMES.get(self.text("disposition-status") or "")
        if outcome is None:
            raise _wrong("disposition-status", "one of " + ", ".join(OUTCOMES))
        properties = self._values.get("properties-to-modify") or {}
        if not isinstance(properties, dict) or not all(isinstance(key, str) for key in properties):
            raise _wrong("properties-to-modify", "a map with strings for keys")
        reason, description = map(text_of_detail, map(self.text, ("deadletter-reason", "deadletter-description")))
        if not properties and reason is None and description is None:
            return outcome, None
        encoded = encode_properties({str(key): value for key, value in properties.items()})
        return outcome, SettleDetails(reason, description, encoded)

    def _entries(self, name: str) -> list[object]:
        value = self._values.get(name)
        items = value.items if isinstance(value, Array) else value
        if not isinstance(items, list | tuple) or not 0 < len(items) <= ENTRIES_LIMIT:
            raise _wrong(name, f"an array or a list of 1 to {ENTRIES_LIMIT} entries")
        return list(items)


def asked_of(body: object) -> Asked:
    """What the body of a request asks: a map with strings for keys."""
    if not isinstance(body, dict):
        raise ServiceError(ARGUMENT_ERROR, "The body of the request is no AMQP value with a map.")
    return Asked({str(key): value for key, value in body.items() if isinstance(key, str)})


def message_maps(
    run: bytes | memoryview, rows: array[int], id_prefix: bytes, *, with_tokens: bool
) -> list[dict[str, object]]:
    """The messages of rows as answers hold them; with_tokens: of those that are locked, the token too."""
    tokens = message_tokens(rows, 0, len(rows) // MESSAGE_WIDTH)
    maps: list[dict[str, object]] = []
    for row in range(len(rows) // MESSAGE_WIDTH):
        entry: dict[str, object] = {"message": encode_message(run, rows, row, id_prefix)}
        if with_tokens and rows[row * MESSAGE_WIDTH + Q_LOCK]:
            entry["lock-token"] = UUID(bytes=tokens[row * TOKEN_BYTES : (row + 1) * TOKEN_BYTES])
        maps.append(entry)
    return maps


def numbers_array(numbers: Iterable[int]) -> Array:
    """An array of longs."""
    return Array(AmqpType.LONG, tuple(Long(each) for each in numbers))


def times_array(times_ms: Iterable[int]) -> Array:
    """An array of timestamps."""
    return Array(AmqpType.TIMESTAMP, tuple(Timestamp(each) for each in times_ms))


def sessions_map(session_ids: tuple[str, ...], skip: int) -> dict[str, object]:
    """A page of session ids; the key is spelled as clients expect it."""
    return {"skip": Int(skip + len(session_ids)), "sessions-ids": Array(AmqpType.STRING, session_ids)}


def _wrong(name: str, what: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, f"The request's '{name}' is missing or of another type; it is {what}.")
