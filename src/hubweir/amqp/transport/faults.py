"""Faults of a peer, by the scope that each of them ends: connection, session or link.

They are raised where peer bytes are understood. The `receive_…` methods of Connection catch them and write a close, an
end or a detach with the condition and the text. None of them leaves the engine. LinkFault stands with the link that it
names (link.py).

| what the peer did                                            | scope      | condition |
|--------------------------------------------------------------|------------|-----------|
| a frame shorter than its header, too large, of another type  | connection | framing-error |
| a channel or a handle over the number we advertised          | connection | framing-error |
| a performative that cannot be decoded; a field of wrong type | connection | decode-error |
| a frame before open, a second open, begin on a channel in use | connection | illegal-state |
| a frame on a channel without a session                       | connection | not-allowed |
| more sessions and links than the byte budget holds           | connection | resource-limit-exceeded |
| a handle that names no link                                  | session    | unattached-handle |
| attach to a handle in use                                    | session    | handle-in-use |
| a disposition that ends before it begins                     | session    | invalid-field |
| a link name over the limit                                   | session    | resource-limit-exceeded |
| an answer of ours does not fit into the peer's frames        | session    | frame-size-too-small |
| transfers on a link that we send on                          | link       | not-allowed |
| a delivery without id, or begun before the last one ended    | link       | invalid-field |
| a tag over 32 bytes                                          | link       | invalid-field |
| more unsettled, or more unfinished bytes, than fit           | link       | resource-limit-exceeded |
| a resumed delivery                                           | link       | not-implemented |

Not mistakes, because clients do it: transfers beyond the session window, transfers without credit, a flow from the
sending side of a link, a second link with a name that is in use.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.errors import Condition, HubweirError

# A text of ours that tells a peer's name or address back to it is cut here, so that an error always fits a frame.
DESCRIPTION_LIMIT = 300


# Takes condition and text of a fault, and returns the text that the peer shall see, such as one with a tracking id.
DescribeError = Callable[[str, str], str]


def as_it_is(symbol: str, text: str) -> str:
    """A DescribeError that leaves the text."""
    return text


class IllegalState(HubweirError):
    """A step that a state table does not have. From a peer's frame it becomes a fault; from our side it is a bug."""


class NotSendable(HubweirError):
    """The host sent on a link that has no credit or is not attached: a mistake of the caller, never of the peer."""


class PeerFault(Exception):
    """A rule that the peer broke: the condition it gets to see and a text for the person who reads it."""

    def __init__(self, condition: Condition, text: str) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text

    def error(self) -> AmqpError:
        """The error as a frame carries it: three fields, the description never null."""
        return AmqpError(condition=self.condition.symbol, description=self.text[:DESCRIPTION_LIMIT])


class ConnectionFault(PeerFault):
    """Ends the connection."""


class SessionFault(PeerFault):
    """Ends the session on whose channel the frame came; the connection goes on."""
