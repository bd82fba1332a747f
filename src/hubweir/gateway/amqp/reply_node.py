"""Links on which answers of $cbs and $management go out. They carry nothing of their own accord."""

from __future__ import annotations

from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.gateway.amqp.node import Node


class ReplyNode(Node):
    """One link for answers: answers wait in the connection's replies until the peer grants credit."""

    link: SenderLink

    def credit(self) -> None:
        self.host.replies.on_credit(self.link)

    def closed(self) -> None:
        self.host.replies.forget(self.link)
