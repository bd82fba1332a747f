"""Link credit, as either side counts it (part 2, section 2.6.7): spent by one for each delivery, not each frame."""

from __future__ import annotations

from hubweir.amqp.transport.serial_number import MODULUS, distance


class SenderCredit:
    """Credit as a sender counts it. delivery_count: deliveries started so far (wraps), with those of `skipped`."""

    __slots__ = ("credit", "delivery_count", "drain", "skipped")

    def __init__(self, initial_delivery_count: int) -> None:
        self.delivery_count = initial_delivery_count
        self.credit = 0
        self.drain = False
        self.skipped = 0

    def on_flow(self, link_credit: int, delivery_count: int | None, drain: bool, initial_delivery_count: int) -> None:
        """Take the receiver's new grant.

        delivery_count is what the receiver had seen when it wrote the flow; None means that it had not seen our
        attach yet, so our count starts where the attach said.
        """
        seen = initial_delivery_count if delivery_count is None else delivery_count
        in_flight = max(0, distance(self.delivery_count, seen))  # one that counts ahead of us gets no more for it
        self.credit = max(0, link_credit - in_flight)
        self.drain = drain

    def spend(self, deliveries: int) -> None:
        """Count deliveries that were started."""
        self.delivery_count = (self.delivery_count + deliveries) % MODULUS
        self.credit -= deliveries

    def use_up(self) -> None:
        """Act as if the rest had been sent: the answer to drain."""
        self.skipped += self.credit
        self.spend(self.credit)


class ReceiverCredit:
    """Credit that a receiver has granted and not seen used. It is advice: some clients send without any."""

    __slots__ = ("credit", "delivery_count")

    def __init__(self) -> None:
        self.delivery_count: int | None = None  # unknown before the sender's attach
        self.credit = 0

    def received(self, deliveries: int) -> None:
        """Count deliveries that came, granted or not."""
        if self.delivery_count is not None:
            self.delivery_count = (self.delivery_count + deliveries) % MODULUS
        self.credit = max(0, self.credit - deliveries)

    def on_flow(self, delivery_count: int | None, link_credit: int | None, drain: bool) -> None:
        """Take a flow of the sender. Only the end of a drain moves the count: it skipped what it did not use."""
        if drain and link_credit == 0 and delivery_count is not None and self.delivery_count is not None:
            self.delivery_count = delivery_count
            self.credit = 0
