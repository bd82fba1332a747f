from __future__ import annotations

from hubweir.amqp.transport.link_credit import ReceiverCredit, SenderCredit


def test_deliveries_under_way_count_against_a_grant() -> None:
    sender = SenderCredit(0)
    sender.on_flow(10, 0, False, 0)
    sender.spend(4)
    sender.on_flow(10, 1, False, 0)
    assert sender.credit == 7, "three of the four were not seen when the flow was written"


def test_a_receiver_that_saw_no_attach_counts_from_its_start() -> None:
    sender = SenderCredit(100)
    sender.spend(0)
    sender.on_flow(5, None, False, 100)
    assert sender.credit == 5
    sender.spend(5)
    sender.on_flow(5, None, False, 100)
    assert sender.credit == 0


def test_a_smaller_grant_takes_credit_back_but_never_below_zero() -> None:
    sender = SenderCredit(0)
    sender.on_flow(10, 0, False, 0)
    sender.spend(6)
    sender.on_flow(2, 0, False, 0)
    assert sender.credit == 0


def test_credit_of_the_largest_number_and_a_count_ahead_of_ours_stay_in_range() -> None:
    sender = SenderCredit(0)
    sender.on_flow(2**32 - 1, 5, False, 0)
    assert sender.credit == 2**32 - 1


def test_the_delivery_count_wraps() -> None:
    sender = SenderCredit(2**32 - 2)
    sender.on_flow(5, 2**32 - 2, False, 2**32 - 2)
    sender.spend(3)
    assert (sender.delivery_count, sender.credit) == (1, 2)
    sender.on_flow(5, 0, False, 2**32 - 2)
    assert sender.credit == 4


def test_using_up_moves_the_count_by_what_was_left() -> None:
    sender = SenderCredit(3)
    sender.on_flow(9, 3, True, 3)
    sender.spend(2)
    sender.use_up()
    assert (sender.delivery_count, sender.credit, sender.drain) == (12, 0, True)


def test_a_receiver_counts_deliveries_without_credit_too() -> None:
    receiver = ReceiverCredit()
    receiver.delivery_count = 2**32 - 1
    receiver.credit = 1
    receiver.received(3)
    assert (receiver.delivery_count, receiver.credit) == (2, 0)


def test_only_the_end_of_a_drain_moves_a_receivers_count() -> None:
    receiver = ReceiverCredit()
    receiver.delivery_count, receiver.credit = 5, 10
    receiver.on_flow(9, 10_000, False)  # a sender that writes flows of its own
    assert (receiver.delivery_count, receiver.credit) == (5, 10)
    receiver.on_flow(15, 0, True)
    assert (receiver.delivery_count, receiver.credit) == (15, 0)


def test_credit_that_is_used_up_for_a_drain_is_no_delivery() -> None:
    sender = SenderCredit(0)
    sender.on_flow(10, 0, True, 0)
    sender.spend(3)
    sender.use_up()
    assert (sender.credit, sender.delivery_count, sender.skipped) == (0, 10, 7)
