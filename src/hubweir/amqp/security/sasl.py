"""The SASL exchange, either role (part 5, section 5.3): frame bodies in, frame bodies out.

    server: mechanisms ->            client: <- mechanisms
            <- init                          init ->
            outcome ->                       <- outcome

One exchange, one step each way: no mechanism here asks a challenge. Whether a response is good decides the host.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar, Final

from hubweir.amqp.security.mechanisms import OFFERED
from hubweir.amqp.types.composite import Composite, CompositeTable, amqp_field, composite, encode_composite
from hubweir.amqp.types.field_types import BINARY, STRING, SYMBOL, SYMBOLS, UBYTE
from hubweir.amqp.types.values import Symbol
from hubweir.errors import DecodeError

OK, AUTH_FAILED = 0, 1


@composite
class SaslMechanisms(Composite):
    """Server: the mechanisms to choose from."""

    CODE: ClassVar[int] = 0x40
    NAME: ClassVar[str] = "amqp:sasl-mechanisms:list"
    sasl_server_mechanisms: tuple[Symbol, ...] = amqp_field(SYMBOLS)


@composite
class SaslInit(Composite):
    """Client: the mechanism chosen and its first word. hostname: what it wants to reach."""

    CODE: ClassVar[int] = 0x41
    NAME: ClassVar[str] = "amqp:sasl-init:list"
    mechanism: Symbol = amqp_field(SYMBOL)
    initial_response: bytes | None = amqp_field(BINARY, default=None)
    hostname: str | None = amqp_field(STRING, default=None)


@composite
class SaslChallenge(Composite):
    """Server: a question. None of our mechanisms asks one."""

    CODE: ClassVar[int] = 0x42
    NAME: ClassVar[str] = "amqp:sasl-challenge:list"
    challenge: bytes = amqp_field(BINARY)


@composite
class SaslResponse(Composite):
    """Client: the answer to a challenge."""

    CODE: ClassVar[int] = 0x43
    NAME: ClassVar[str] = "amqp:sasl-response:list"
    response: bytes = amqp_field(BINARY)


@composite
class SaslOutcome(Composite):
    """Server: 0 ok, 1 authentication failed, 2 to 4 failures of the system."""

    CODE: ClassVar[int] = 0x44
    NAME: ClassVar[str] = "amqp:sasl-outcome:list"
    code: int = amqp_field(UBYTE)
    additional_data: bytes | None = amqp_field(BINARY, default=None)


SaslPerformative = SaslMechanisms | SaslInit | SaslChallenge | SaslResponse | SaslOutcome
_TABLE: Final[CompositeTable[SaslPerformative]] = CompositeTable(
    "SASL performative", (SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome)
)


class SaslState(Enum):
    """Whose turn it is."""

    AWAIT_MECHANISMS = auto()  # client
    AWAIT_INIT = auto()  # server
    AWAIT_ANSWER = auto()  # server: the host has to say
    AWAIT_OUTCOME = auto()  # client
    DONE = auto()


def _expect(body: memoryview, cls: type[SaslPerformative], state: SaslState) -> SaslPerformative:
    performative, _ = _TABLE.decode(body)
    if not isinstance(performative, cls):
        raise DecodeError(f"{performative.NAME} came while the SASL exchange is at {state.name}")
    return performative


class SaslServer:
    """The server's side. mechanisms() is sent first; then receive_init, answer."""

    def __init__(self) -> None:
        self.state = SaslState.AWAIT_INIT

    def mechanisms(self) -> bytes:
        """The body of the first frame: all mechanisms, as an array."""
        return encode_composite(SaslMechanisms(sasl_server_mechanisms=tuple(map(Symbol, OFFERED))))

    def receive_init(self, body: memoryview) -> SaslInit:
        """The client's choice; DecodeError when the frame is anything else."""
        performative = _expect(body, SaslInit, self.state)
        assert isinstance(performative, SaslInit)  # what _expect looked at
        self.state = SaslState.AWAIT_ANSWER
        return performative

    def answer(self, code: int) -> bytes:
        """The body of the last frame."""
        self.state = SaslState.DONE
        return encode_composite(SaslOutcome(code=code))


class SaslClient:
    """The client's side, for one mechanism and its response."""

    def __init__(self, mechanism: str, response: bytes, hostname: str | None) -> None:
        self.state = SaslState.AWAIT_MECHANISMS
        self._init = SaslInit(mechanism=Symbol(mechanism), initial_response=response, hostname=hostname)

    def receive_mechanisms(self, body: memoryview) -> bytes:
        """Read what the server offers, and return the body to answer; DecodeError when it lacks our mechanism."""
        performative = _expect(body, SaslMechanisms, self.state)
        assert isinstance(performative, SaslMechanisms)  # what _expect looked at
        if self._init.mechanism not in performative.sasl_server_mechanisms:
            offered = ", ".join(performative.sasl_server_mechanisms[:16])
            raise DecodeError(f"the server does not offer {self._init.mechanism}; it offers {offered}")
        self.state = SaslState.AWAIT_OUTCOME
        return encode_composite(self._init)

    def receive_outcome(self, body: memoryview) -> int:
        """The server's verdict: OK or a reason."""
        performative = _expect(body, SaslOutcome, self.state)
        assert isinstance(performative, SaslOutcome)  # what _expect looked at
        self.state = SaslState.DONE
        return performative.code


def bare_hostname(hostname: str | None) -> str | None:
    """A host name as it is routed on: one client appends the path of its WebSocket."""
    return None if hostname is None else hostname.partition("/")[0]
