"""`queue/$management`: what clients ask about messages and sessions beside their links.

| operation (com.microsoft: in front) | right  | answer |
|-------------------------------------|--------|--------|
| peek-message                        | Listen | 200, messages; 204 when there are none |
| receive-by-sequence-number          | Listen | 200, deferred messages, all that were asked for |
| renew-lock, update-disposition      | Listen | 200, or 410 when a lock is lost |
| schedule-message                    | Send   | 200, sequence numbers |
| cancel-scheduled-message            | Send   | 200 |
| batch-delete-messages               | Listen | 200, how many; 204 for none |
| renew-session-lock                  | Listen | 200, its end |
| set-session-state, get-session-state | Listen | 200 |
| get-message-sessions                | Listen | 200, a page of ids; 204 when there are none |
| add-rule, remove-rule               | Manage | 200; 409 for a name that is there, 404 for one that is not |
| enumerate-rules                     | Manage | 200, a page of rules; 204 when there are none |

What is sent is asked of queues and topics, what is received of queues and subscriptions, rules of subscriptions alone.
An entity that takes nothing schedules nothing, and one that gives nothing out gives out no deferred message either, and
deletes none: 400.

Bodies are maps; message_forms.py reads and makes them. A lock's token is enough to settle and to renew: the link that a
request names is asked for its session alone, where the request names none.

Where an entity has several fragments, a request goes to those that it is about (inquiry.py): tokens and sequence
numbers name them, a session is its key's, and what is scheduled goes where it would if it were sent. Peeks and lists of
sessions go through one fragment behind the other. What is received by number is of one fragment; nothing is deleted in
batches there.

In a transaction messages are settled, cancelled and scheduled; that is answered at once, and done at the commit
(transactions.py). The numbers of those that are scheduled are reserved before, for good.
Long because each operation has its method here, and its line in one table.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.values import Int
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer, nobody_waits
from hubweir.broker.commands.fragment import (
    CancelScheduled,
    DeleteMessages,
    GetSessionState,
    ListSessions,
    LocksRenewed,
    MessagesDeleted,
    MessagesEnqueued,
    MessagesReceived,
    MessagesSettled,
    PeekMessages,
    ReceiveDeferred,
    RenewLocks,
    RenewSession,
    SessionRenewed,
    SessionsListed,
    SessionStateRead,
    SetSessionState,
    SettleMessages,
)
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.transaction import ReserveNumbers
from hubweir.errors import ARGUMENT_ERROR, MESSAGE_TOO_LARGE, NOT_ALLOWED, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.amqp.inquiry import PREFIX, Inquiry, Question
from hubweir.gateway.amqp.kept_messages import name_partition
from hubweir.gateway.amqp.message_forms import (
    Asked,
    asked_of,
    message_maps,
    numbers_array,
    sessions_map,
    times_array,
)
from hubweir.gateway.amqp.node import NodeHost
from hubweir.gateway.amqp.queue_receiver_node import QueueReceiverNode
from hubweir.gateway.amqp.queue_sender_node import scheduled_run
from hubweir.gateway.amqp.request_node import REQUEST_LIMIT_BYTES, RequestNode, text_property
from hubweir.gateway.fragment_choice import FragmentChoice
from hubweir.gateway.fragment_shares import number_share, number_shares, token_shares
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.kernels import message_tokens
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_SEQUENCE_NUMBER
from hubweir.namespace.availability import check_may_receive, check_may_send
from hubweir.namespace.entity import EntityKind
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.rights import Rights
from hubweir.queue.settle_outcome import LOCK_LOST, SettleOutcome, lost_error
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.transaction import Reserved
from hubweir.topic.rule_wire import described_rule, read_new_rule

A = TypeVar("A", bound=Answer)

OK, NOTHING = 200, 204
# The messages of one answer.
PEEK_LIMIT_BYTES = 256 * 1024
PEEK_LIMIT_MESSAGES = 5_000
DELETE_LIMIT_MESSAGES = 4_000
SESSIONS_LIMIT = 1_000
RULES_LIMIT = 1_000
# "Whatever was never updated, too": clients send the last millisecond that their calendar has, or the one behind it.
NEVER_MS = 253_402_300_799_999


def _release(place: FragmentPlace, answer: MessagesReceived) -> None:
    """Give back messages that were locked for a client that heard nothing of it."""
    rows = array("q", answer.rows)
    tokens = message_tokens(rows, 0, len(rows) // MESSAGE_WIDTH)
    place.broker.submit(SettleMessages(place.log_id, tokens, SettleOutcome.RELEASE), nobody_waits)


# What one operation does: of a node, with a request, its size, and what it asks.
Step = Callable[["MessageManagementNode", Message, int, Asked], None]


class MessageManagementNode(RequestNode):
    """One sender link on the management node of a sub-queue."""

    def __init__(
        self,
        host: NodeHost,
        link: ReceiverLink,
        *,
        scope: Scope,
        kind: EntityKind,
        fragments: Fragments,
        choice: FragmentChoice | None,
        sub_queue: SubQueue,
        needs_session: bool,
        max_message_size_bytes: int,
    ) -> None:
        """scope: of this node, for which each request needs a claim. choice: see QueueSenderNode."""
        super().__init__(host, link)
        self.entity = fragments.entity
        self._scope = scope
        self._kind = kind
        self._fragments = fragments
        self._choice = choice
        self._sub_queue = sub_queue
        self._needs_session = needs_session
        self._max_message_size_bytes = max_message_size_bytes
        self.request_limit_bytes = REQUEST_LIMIT_BYTES + max_message_size_bytes

    def stands_on(self, entity: str) -> bool:
        return self._fragments.places[0].goes_with(entity)

    def request(self, message: Message, size: int) -> None:
        try:
            step, asked = self._admitted(message)
            step(self, message, size, asked)
        except ServiceError as refusal:
            self.refuse(message, size, refusal, entity=self.entity)

    def transacted(self, message: Message, size: int, txn_id: bytes) -> None:
        try:
            step, asked = self._admitted(message)
            in_transaction = _TRANSACTED.get(step)
            if in_transaction is None:
                operation = (text_property(message, "operation") or "").lower().removeprefix(PREFIX)
                text = f"{operation} at '{self.entity}' cannot be part of a transaction: ask without one."
                # Rules of a partitioned topic are never changed in one.
                is_never = step in _OF_RULES and self._fragments.is_partitioned
                raise ServiceError(NOT_ALLOWED if is_never else NOT_IMPLEMENTED, text)
            in_transaction(self, txn_id, message, size, asked)
        except ServiceError as refusal:
            self.refuse(message, size, refusal, entity=self.entity)

    def _admitted(self, message: Message) -> tuple[Step, Asked]:
        """What a request wants done, with what it asks. Raises ServiceError where that is not, or may not be, done."""
        operation = (text_property(message, "operation") or "").lower()
        found = _STEPS.get(operation.removeprefix(PREFIX)) if operation.startswith(PREFIX) else None
        if found is None:
            text = f"The operation {operation[:64]!r} does not exist on the management node of '{self.entity}'."
            raise ServiceError(NOT_IMPLEMENTED, text)
        right, step = found
        self.host.claims.require(right, self._scope)
        self.host.authorized()
        self._check_kind(right)
        self._check_status(step)
        self.host.gateway.uses.note(self._fragments.places[0])
        return step, asked_of(message.body.value if isinstance(message.body, ValueBody) else None)

    def _check_kind(self, right: Rights) -> None:
        """Raise ServiceError for a request that this kind of entity does not know."""
        if right is Rights.LISTEN and self._kind is EntityKind.TOPIC:
            text = f"Nothing can be received from topic '{self.entity}': ask '{self.entity}/Subscriptions/NAME'."
            raise ServiceError(NOT_ALLOWED, text)
        if right is Rights.SEND and self._kind is EntityKind.SUBSCRIPTION:
            text = f"Nothing can be sent to subscription '{self.entity}': ask '{self._fragments.places[0].topic}'."
            raise ServiceError(NOT_ALLOWED, text)
        if right is Rights.MANAGE and self._kind is not EntityKind.SUBSCRIPTION:
            raise ServiceError(ARGUMENT_ERROR, f"'{self.entity}' has no rules: rules are of subscriptions.")

    def _check_status(self, step: Step) -> None:
        """Raise ServiceError ENTITY_DISABLED for a request that sends or receives where the status lets nobody."""
        check, found = _BY_STATUS.get(step), self.host.gateway.namespace.find(self.entity, MessagingDescription)
        if check is not None and found is not None:
            check(found.description)

    # Asking the fragments

    def _ask(self, message: Message, size: int, question: Question, kind: type[A], then: Callable[[A], None]) -> None:
        """Ask one fragment; then, with its answer, answer the request."""
        Inquiry(self, message, size, kind).ask([question], lambda answers: then(answers[0]))

    def _of_session(self, session_id: str) -> FragmentPlace:
        return self._fragments.of_key(session_id.encode())

    def _session_of(self, message: Message, asked: Asked) -> str | None:
        """The session that the request names, or holds by the link that it names; None: none."""
        session_id = asked.text("session-id")
        name = text_property(message, "associated-link-name")
        if session_id is None and name is not None:
            for node in self.host.nodes:
                if isinstance(node, QueueReceiverNode) and node.entity == self.entity and node.link.name == name:
                    return node.session_id
        return session_id

    # One method an operation

    def _peek(self, message: Message, size: int, asked: Asked) -> None:
        from_number = asked.number("from-sequence-number")
        left_count = min(asked.number("message-count", least=1), PEEK_LIMIT_MESSAGES)
        left_bytes = PEEK_LIMIT_BYTES
        session_id = self._session_of(message, asked)
        found: list[dict[str, object]] = []
        has_more = False

        def each_to_its_end() -> Iterator[FragmentPlace]:
            """Each fragment until it answers with nothing: an answer may end where a large message does not fit any
            more, and a small one of the next fragment would. Whoever peeks on from behind that would miss the rest."""
            nonlocal has_more
            for place in places:
                has_more = True
                while has_more:
                    has_more = False  # nor does one that is away
                    yield place

        def next_command(place: FragmentPlace) -> PeekMessages | None:
            if left_count <= 0 or left_bytes <= 0:
                return None
            return PeekMessages(place.log_id, self._sub_queue, from_number, left_count, left_bytes, session_id)

        def take(place: FragmentPlace, answer: MessagesReceived) -> None:
            nonlocal from_number, left_count, left_bytes, has_more
            if not answer.rows:
                return
            rows = array("q", answer.rows)
            has_more, from_number = True, rows[-MESSAGE_WIDTH + Q_SEQUENCE_NUMBER] + 1
            # The first message of an answer comes whatever its size is, and here it may not be the first of all.
            if not found or len(answer.run) <= left_bytes:
                found.extend(self._maps(place, answer, with_tokens=False))
                left_count -= len(rows) // MESSAGE_WIDTH
            left_bytes -= len(answer.run)

        places = self._fragments.from_number(from_number) if session_id is None else (self._of_session(session_id),)
        answer = partial(self._answer_messages, message, size, found)
        Inquiry(self, message, size, MessagesReceived).walk(each_to_its_end(), next_command, take, answer)

    def _receive_deferred(self, message: Message, size: int, asked: Asked) -> None:
        mode = asked.receive_mode("receiver-settle-mode")
        share = number_share(self._fragments, asked.numbers("sequence-numbers"))
        session_id, place = self._session_of(message, asked), share.place
        command = ReceiveDeferred(place.log_id, self._sub_queue, share.numbers.tobytes(), mode, session_id)

        def received(answers: list[MessagesReceived]) -> None:
            self._answer_messages(message, size, self._maps(place, answers[0], with_tokens=True))

        untold = _release if mode is ReceiveMode.PEEK_LOCK else None
        Inquiry(self, message, size, MessagesReceived).ask([Question(place, command)], received, untold=untold)

    def _maps(self, place: FragmentPlace, answer: MessagesReceived, *, with_tokens: bool) -> list[dict[str, object]]:
        """The messages of an answer, as requests are answered with them."""
        rows = array("q", answer.rows)
        if self._fragments.is_partitioned:
            name_partition(rows, place.number)
        return message_maps(answer.run, rows, place.id_prefix, with_tokens=with_tokens)

    def _answer_messages(self, message: Message, size: int, maps: list[dict[str, object]]) -> None:
        if maps:
            self.answer(message, size, OK, "OK", {"messages": maps})
        else:
            self.answer(message, size, NOTHING, "No content")

    def _renew(self, message: Message, size: int, asked: Asked) -> None:
        shares = token_shares(self._fragments, asked.tokens("lock-tokens"))

        def renewed(answers: list[LocksRenewed]) -> None:
            until = {
                at: until_ms
                for share, answer in zip(shares, answers, strict=True)
                for at, until_ms in zip(share.at, array("q", answer.until_ms), strict=True)
            }
            if not all(until.values()):
                raise lost_error(LOCK_LOST)
            ends = times_array(until[at] for at in sorted(until))
            self.answer(message, size, OK, "OK", {"expirations": ends})

        questions = [Question(share.place, RenewLocks(share.place.log_id, share.tokens)) for share in shares]
        Inquiry(self, message, size, LocksRenewed).ask(questions, renewed)

    def _settle(self, message: Message, size: int, asked: Asked) -> None:
        outcome, details = asked.settlement()

        def settled(answers: list[MessagesSettled]) -> None:
            lost = [code for answer in answers for code in answer.codes if code]
            if lost:
                raise lost_error(lost[0], self._sub_queue)
            self.answer(message, size, OK, "OK")

        questions = [
            Question(share.place, SettleMessages(share.place.log_id, share.tokens, outcome, details))
            for share in token_shares(self._fragments, asked.tokens("lock-tokens"))
        ]
        Inquiry(self, message, size, MessagesSettled).ask(questions, settled)

    def _settle_in(self, txn_id: bytes, message: Message, size: int, asked: Asked) -> None:
        outcome, details = asked.settlement()
        shares = token_shares(self._fragments, asked.tokens("lock-tokens"))
        self._all_in(
            txn_id,
            [
                partial(self.host.transactions.settle, txn_id, share.place, share.tokens, outcome, details)
                for share in shares
            ],
        )
        self.answer(message, size, OK, "OK")

    def _all_in(self, txn_id: bytes, steps: list[Callable[[], None]]) -> None:
        """Make these steps part of a transaction, which is spoilt where it can have some of them alone."""
        for at, step in enumerate(steps):
            try:
                step()
            except ServiceError as refusal:
                if at:
                    self.host.transactions.spoil(txn_id, refusal)
                raise

    def _schedule(self, message: Message, size: int, asked: Asked) -> None:
        messages = asked.messages("messages")
        scheduled = scheduled_run(
            messages, self._fragments.places[0], self._choice, needs_session=self._needs_session
        )  # fmt: skip
        place = scheduled.place
        command = place.store(scheduled.run, len(messages), sum(map(len, messages)))
        self._ask_to_schedule(message, size, Question(place, command), partial(self._answer_numbers, message, size))

    def _ask_to_schedule(
        self, message: Message, size: int, question: Question, then: Callable[[MessagesEnqueued], None]
    ) -> None:
        """Ask where messages are to be; a fragment that is away is told as it is to those who send."""
        told = None if self._choice is None else self._choice.told
        Inquiry(self, message, size, MessagesEnqueued, told=told).ask([question], lambda answers: then(answers[0]))

    def _answer_numbers(self, message: Message, size: int, answer: MessagesEnqueued) -> None:
        numbers = range(answer.first_number, answer.next_number)
        self.answer(message, size, OK, "OK", {"sequence-numbers": numbers_array(numbers)})

    def _schedule_in(self, txn_id: bytes, message: Message, size: int, asked: Asked) -> None:
        messages, transactions = asked.messages("messages"), self.host.transactions
        scheduled = scheduled_run(
            messages, self._fragments.places[0], self._choice, needs_session=self._needs_session, in_transaction=True
        )
        place = scheduled.place
        transactions.check_schedules(txn_id, len(messages))

        def reserved(answer: MessagesEnqueued) -> None:
            numbers = Reserved(answer.first_number, len(messages))
            transactions.schedule(txn_id, place, scheduled.run, numbers, key=scheduled.key)
            self._answer_numbers(message, size, answer)

        command = ReserveNumbers(place.log_id, len(messages))
        self._ask_to_schedule(message, size, Question(place, command), reserved)

    def _cancel(self, message: Message, size: int, asked: Asked) -> None:
        questions = [
            Question(share.place, CancelScheduled(share.place.log_id, share.numbers.tobytes()))
            for share in number_shares(self._fragments, asked.numbers("sequence-numbers"))
        ]
        Inquiry(self, message, size, Done).ask(questions, lambda _: self.answer(message, size, OK, "OK"))

    def _cancel_in(self, txn_id: bytes, message: Message, size: int, asked: Asked) -> None:
        shares = number_shares(self._fragments, asked.numbers("sequence-numbers"))
        cancel = self.host.transactions.cancel
        self._all_in(txn_id, [partial(cancel, txn_id, share.place, share.numbers) for share in shares])
        self.answer(message, size, OK, "OK")

    def _delete(self, message: Message, size: int, asked: Asked) -> None:
        if self._fragments.is_partitioned:
            text = f"'{self.entity}' is partitioned: messages are not deleted in batches there. Receive them."
            raise ServiceError(NOT_ALLOWED, text)
        place = self._fragments.only
        before_ms = asked.optional_number("enqueued-time-utc")
        count = min(asked.number("message-count", least=1), DELETE_LIMIT_MESSAGES)
        command = DeleteMessages(
            place.log_id,
            self._sub_queue,
            count,
            NEVER_MS if before_ms is None else before_ms,
            self._session_of(message, asked),
        )

        def deleted(answer: MessagesDeleted) -> None:
            if answer.count:
                self.answer(message, size, OK, "OK", {"message-count": Int(answer.count)})
            else:
                self.answer(message, size, NOTHING, "No content")

        self._ask(message, size, Question(place, command), MessagesDeleted, deleted)

    def _renew_session(self, message: Message, size: int, asked: Asked) -> None:
        def renewed(answer: SessionRenewed) -> None:
            [until] = times_array([answer.locked_until_ms]).items
            self.answer(message, size, OK, "OK", {"expiration": until})

        session_id = asked.session_id()
        place = self._of_session(session_id)
        self._ask(message, size, Question(place, RenewSession(place.log_id, session_id)), SessionRenewed, renewed)

    def _set_state(self, message: Message, size: int, asked: Asked) -> None:
        state = asked.binary("session-state")
        if state is not None and len(state) > self._max_message_size_bytes:
            text = (
                f"The state of a session of '{self.entity}' has {len(state)} bytes, and may have "
                f"{self._max_message_size_bytes}, as a message."
            )
            raise ServiceError(MESSAGE_TOO_LARGE, text)
        session_id = asked.session_id()
        place = self._of_session(session_id)
        question = Question(place, SetSessionState(place.log_id, session_id, state))
        self._ask(message, size, question, Done, lambda _: self.answer(message, size, OK, "OK"))

    def _get_state(self, message: Message, size: int, asked: Asked) -> None:
        def found(answer: SessionStateRead) -> None:
            self.answer(message, size, OK, "OK", {"session-state": answer.state})

        session_id = asked.session_id()
        place = self._of_session(session_id)
        self._ask(message, size, Question(place, GetSessionState(place.log_id, session_id)), SessionStateRead, found)

    def _list_sessions(self, message: Message, size: int, asked: Asked) -> None:
        updated_ms = asked.number("last-updated-time")
        skip, top = asked.number("skip"), min(asked.number("top", least=1), SESSIONS_LIMIT)
        after_ms, left_skip, found = None if updated_ms >= NEVER_MS else updated_ms, skip, list[str]()

        def next_command(place: FragmentPlace) -> ListSessions | None:
            left = top - len(found)
            return ListSessions(place.log_id, after_ms, left_skip, left) if left else None

        def take(place: FragmentPlace, answer: SessionsListed) -> None:
            nonlocal left_skip
            left_skip -= answer.passed
            found.extend(answer.session_ids)

        def listed() -> None:
            if found:
                self.answer(message, size, OK, "OK", sessions_map(tuple(found), skip))
            else:
                self.answer(message, size, NOTHING, "No content")

        Inquiry(self, message, size, SessionsListed).walk(self._fragments.places, next_command, take, listed)

    def _add_rule(self, message: Message, size: int, asked: Asked) -> None:
        rule = read_new_rule(asked.value("rule-name"), asked.value("rule-description"))
        self.host.gateway.subscription_rules.create(self.entity, rule, partial(self._answer_rule, message, size))

    def _remove_rule(self, message: Message, size: int, asked: Asked) -> None:
        name = asked.text("rule-name") or ""
        self.host.gateway.subscription_rules.delete(self.entity, name, partial(self._answer_rule, message, size))

    def _answer_rule(self, message: Message, size: int, result: object) -> None:
        if isinstance(result, ServiceError):
            self.refuse(message, size, result, entity=self.entity)
        else:
            self.answer(message, size, OK, "OK")

    def _list_rules(self, message: Message, size: int, asked: Asked) -> None:
        skip, top = asked.number("skip"), min(asked.number("top", least=1), RULES_LIMIT)
        listed = self.host.gateway.namespace.subscription_rules(self.entity).listed()
        rules = [{"rule-description": described_rule(rule)} for rule in islice(listed, skip, skip + top)]
        if rules:
            self.answer(message, size, OK, "OK", {"rules": rules})
        else:
            self.answer(message, size, NOTHING, "No content")


_STEPS: dict[str, tuple[Rights, Step]] = {
    "peek-message": (Rights.LISTEN, MessageManagementNode._peek),
    "receive-by-sequence-number": (Rights.LISTEN, MessageManagementNode._receive_deferred),
    "renew-lock": (Rights.LISTEN, MessageManagementNode._renew),
    "update-disposition": (Rights.LISTEN, MessageManagementNode._settle),
    "schedule-message": (Rights.SEND, MessageManagementNode._schedule),
    "cancel-scheduled-message": (Rights.SEND, MessageManagementNode._cancel),
    "batch-delete-messages": (Rights.LISTEN, MessageManagementNode._delete),
    "renew-session-lock": (Rights.LISTEN, MessageManagementNode._renew_session),
    "set-session-state": (Rights.LISTEN, MessageManagementNode._set_state),
    "get-session-state": (Rights.LISTEN, MessageManagementNode._get_state),
    "get-message-sessions": (Rights.LISTEN, MessageManagementNode._list_sessions),
    "add-rule": (Rights.MANAGE, MessageManagementNode._add_rule),
    "remove-rule": (Rights.MANAGE, MessageManagementNode._remove_rule),
    "enumerate-rules": (Rights.MANAGE, MessageManagementNode._list_rules),
}
# What the entity's status decides on, as on links. To look and to settle is always allowed.
_BY_STATUS: dict[Step, Callable[[MessagingDescription], None]] = {
    MessageManagementNode._schedule: check_may_send,
    MessageManagementNode._receive_deferred: check_may_receive,
    MessageManagementNode._delete: check_may_receive,
}
_OF_RULES = (MessageManagementNode._add_rule, MessageManagementNode._remove_rule)
# What some do in a transaction, instead.
_TRANSACTED: dict[Step, Callable[[MessageManagementNode, bytes, Message, int, Asked], None]] = {
    MessageManagementNode._settle: MessageManagementNode._settle_in,
    MessageManagementNode._cancel: MessageManagementNode._cancel_in,
    MessageManagementNode._schedule: MessageManagementNode._schedule_in,
}
