"""What a receiver's state means for a queue, and what it is answered."""

from __future__ import annotations

from random import Random

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, DeliveryState, Modified, Rejected, Released
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.values import Described, Symbol, ULong
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.settlements import DETAIL_LIMIT_CHARACTERS, Settling, encode_properties, spoken_of
from hubweir.gateway.append_queue import DeliveryRange
from hubweir.queue.settle_outcome import LOCK_LOST, SESSION_LOCK_LOST, SettleDetails, SettleOutcome, lost_error

DEAD_LETTER = Symbol("com.microsoft:dead-letter")


def rejected(info: dict[str, object] | None = None, description: str = "") -> Rejected:
    symbols = None if info is None else {Symbol(name): value for name, value in info.items()}
    return Rejected(error=AmqpError(condition=DEAD_LETTER, description=description, info=symbols))


@pytest.mark.parametrize(
    ("state", "outcome", "answer"),
    [
        (Accepted(), SettleOutcome.COMPLETE, Accepted()),
        (Released(), SettleOutcome.RELEASE, Released()),
        (None, SettleOutcome.RELEASE, Released()),
        (Modified(), SettleOutcome.ABANDON, Modified()),
        (Modified(delivery_failed=True), SettleOutcome.ABANDON, Modified(delivery_failed=True)),
        (Modified(undeliverable_here=True), SettleOutcome.DEFER, Modified(undeliverable_here=True)),
        (rejected({"DeadLetterReason": "r"}), SettleOutcome.DEAD_LETTER, Rejected(error=None)),
        (Rejected(error=None), SettleOutcome.DEAD_LETTER, Rejected(error=None)),
    ],
)
def test_each_state_is_one_settlement_and_answered_in_kind(
    state: DeliveryState | None, outcome: SettleOutcome, answer: DeliveryState
) -> None:
    spoken = spoken_of(state)
    assert (spoken.outcome, spoken.answer) == (outcome, answer)


def test_reason_and_description_come_from_the_map_and_the_rest_are_properties() -> None:
    info = {"DeadLetterReason": "r", "DeadLetterErrorDescription": "d", "tries": 3}
    details = spoken_of(rejected(info, "not this")).details
    assert details is not None
    assert (details.reason, details.description) == ("r", "d")
    assert decode(details.properties)[0] == {"tries": 3}


def test_without_a_map_the_error_describes_and_null_is_left_out() -> None:
    assert spoken_of(rejected(None, "why")).details == SettleDetails(None, "why", b"")
    nulls = {"DeadLetterReason": None, "DeadLetterErrorDescription": None}
    assert spoken_of(rejected(nulls)).details == SettleDetails(None, None, b"")
    assert spoken_of(Rejected(error=None)).details == SettleDetails(None, None, b"")


def test_texts_are_cut_at_their_limit() -> None:
    details = spoken_of(rejected({"DeadLetterReason": "r" * 5_000})).details
    assert details is not None and details.reason == "r" * DETAIL_LIMIT_CHARACTERS


def test_properties_to_modify_go_with_abandon_and_with_defer() -> None:
    for here in (False, True):
        state = Modified(undeliverable_here=here, message_annotations={Symbol("k"): "v"})
        details = spoken_of(state).details
        assert details is not None and decode(details.properties)[0] == {"k": "v"}
        # What clients get back is their outcome, not their own annotations.
        assert spoken_of(state).answer == Modified(undeliverable_here=here)
    assert spoken_of(Modified()).details is None
    assert encode_properties({}) == b""


def test_a_state_of_another_kind_is_refused() -> None:
    with pytest.raises(ServiceError) as refused:
        spoken_of(Described(ULong(0x99), []))
    assert refused.value.condition.symbol == "amqp:not-implemented"


def test_a_lost_lock_has_the_condition_that_clients_know() -> None:
    assert lost_error(LOCK_LOST).condition.symbol == "com.microsoft:message-lock-lost"
    assert lost_error(LOCK_LOST).text.startswith(
        "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue"
    )
    assert lost_error(SESSION_LOCK_LOST).condition.symbol == "com.microsoft:session-lock-lost"


def test_deliveries_that_are_answered_alike_are_ranges() -> None:
    settling = Settling(spoken_of(Accepted()), spans=[(2**32 - 2, 1, True), (7, 8, False), (9, 9, True)])
    assert settling.ranges_by_code(bytes(7)) == {0: [DeliveryRange(2**32 - 2, 1), DeliveryRange(9, 9)]}
    assert settling.ranges_by_code(bytes([0, LOCK_LOST, LOCK_LOST, 0, 0, 0, LOCK_LOST])) == {
        0: [DeliveryRange(2**32 - 2, 2**32 - 2), DeliveryRange(1, 1)],
        LOCK_LOST: [DeliveryRange(2**32 - 1, 0), DeliveryRange(9, 9)],
    }


@pytest.mark.parametrize("seed", range(20))
def test_each_delivery_that_waits_has_the_code_of_its_token(seed: int) -> None:
    rng, wanted = Random(seed), dict[int, int]()
    settling, codes, first_id = Settling(spoken_of(Accepted())), bytearray(), rng.choice([0, 2**32 - 20])
    for _ in range(rng.randrange(5)):
        count, waits = rng.choice([1, 2, 10]), rng.random() < 0.7
        settling.spans.append((first_id, (first_id + count - 1) % 2**32, waits))
        for _ in range(count):
            codes.append(rng.choice([0, 0, LOCK_LOST, SESSION_LOCK_LOST, 10]))
            if waits:
                wanted[first_id] = codes[-1]
            first_id = (first_id + 1) % 2**32
        first_id = (first_id + rng.choice([0, 3])) % 2**32
    told = [
        ((span.first_id + place) % 2**32, code)
        for code, ranges in settling.ranges_by_code(bytes(codes)).items()
        for span in ranges
        for place in range((span.last_id - span.first_id) % 2**32 + 1)
    ]
    assert sorted(told) == sorted(wanted.items())
