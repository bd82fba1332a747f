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
request names is asked for its session alone, where the request names none. A request that names a time-out is answered
with 408 when it ends first (answer_deadline.py).

In a transaction messages are settled, cancelled and scheduled; that is answered at once, and done at the commit
(transactions.py). The numbers of those that are scheduled are reserved before, for good.
(contract "Service Bus", section 6)
Long because each operation has its method here, and its line in one table.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TypeVar

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.values import Int
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer, Command
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
from hubweir.errors import ARGUMENT_ERROR, MESSAGE_TOO_LARGE, NOT_ALLOWED, NOT_IMPLEMENTED, TIMED_OUT, ServiceError
from hubweir.gateway.amqp.answer_deadline import AnswerDeadline, server_timeout_ms
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
from hubweir.gateway.amqp.sent_tokens import tokens_of
from hubweir.gateway.brokers import error_of
from hubweir.gateway.fragments import FragmentPlace
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.namespace.availability import check_may_receive, check_may_send
from hubweir.namespace.entity import EntityKind
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.rights import Rights
from hubweir.queue.settle_outcome import SettleOutcome, lost_error
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.transaction import Reserved
from hubweir.topic.rule_wire import described_rule, read_new_rule

A = TypeVar("A", bound=Answer)

OK, NOTHING = 200, 204
# The messages of one answer. (contract "Service Bus", 6.2.1)
PEEK_LIMIT_BYTES = 256 * 1024
PEEK_LIMIT_MESSAGES = 5_000
DELETE_LIMIT_MESSAGES = 4_000
SESSIONS_LIMIT = 1_000
RULES_LIMIT = 1_000
# "Whatever was never updated, too": clients send the last millisecond that their calendar has, or the one behind it.
NEVER_MS = 253_402_300_799_999
PREFIX = "com.microsoft:"


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
        place: FragmentPlace,
        sub_queue: SubQueue,
        needs_session: bool,
        max_message_size_bytes: int,
    ) -> None:
        """scope: of this node, for which each request needs a claim."""
        super().__init__(host, link)
        self.entity = place.entity
        self._scope = scope
        self._kind = kind
        self._place = place
        self._sub_queue = sub_queue
        self._needs_session = needs_session
        self._max_message_size_bytes = max_message_size_bytes
        self.request_limit_bytes = REQUEST_LIMIT_BYTES + max_message_size_bytes
        self._id_prefix = place.id_prefix

    def stands_on(self, entity: str) -> bool:
        return self._place.goes_with(entity)

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
                raise ServiceError(NOT_IMPLEMENTED, text)
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
        self.host.gateway.uses.note(self._place)
        return step, asked_of(message.body.value if isinstance(message.body, ValueBody) else None)

    def _check_kind(self, right: Rights) -> None:
        """Raise ServiceError for a request that this kind of entity does not know."""
        if right is Rights.LISTEN and self._kind is EntityKind.TOPIC:
            text = f"Nothing can be received from topic '{self.entity}': ask '{self.entity}/Subscriptions/NAME'."
            raise ServiceError(NOT_ALLOWED, text)
        if right is Rights.SEND and self._kind is EntityKind.SUBSCRIPTION:
            text = f"Nothing can be sent to subscription '{self.entity}': ask '{self._place.topic}'."
            raise ServiceError(NOT_ALLOWED, text)
        if right is Rights.MANAGE and self._kind is not EntityKind.SUBSCRIPTION:
            raise ServiceError(ARGUMENT_ERROR, f"'{self.entity}' has no rules: rules are of subscriptions.")

    def _check_status(self, step: Step) -> None:
        """Raise ServiceError ENTITY_DISABLED for a request that sends or receives where the status lets nobody."""
        check, found = _BY_STATUS.get(step), self.host.gateway.namespace.find(self.entity, MessagingDescription)
        if check is not None and found is not None:
            check(found.description)

    # Asking the broker

    def _ask(
        self,
        message: Message,
        size: int,
        command: Command,
        kind: type[A],
        then: Callable[[A], None],
        *,
        late: Callable[[A], None] | None = None,
    ) -> None:
        """Have the broker run a command; then, with its answer, or the request's refusal.

        late: what to do with an answer that comes when the client was told already that its time is over.
        """
        limit_ms = server_timeout_ms(message)

        def over() -> None:
            operation = (text_property(message, "operation") or "").removeprefix(PREFIX)
            text = (
                f"{operation} at '{self.entity}' was not answered within {limit_ms} ms, as its server-timeout says; "
                "whether it takes effect is not known. Look, then ask again."
            )
            self.refuse(message, size, ServiceError(TIMED_OUT, text), entity=self.entity)

        def answered(answer: Answer) -> None:
            if not deadline.answered():
                if late is not None and isinstance(answer, kind):
                    late(answer)
                return
            try:
                if not isinstance(answer, kind):
                    raise error_of(answer)
                then(answer)
            except ServiceError as refusal:
                self.refuse(message, size, refusal, entity=self.entity)

        deadline = AnswerDeadline(limit_ms, over)
        self._place.broker.submit(command, answered)
        deadline.begin(self.host.env)

    def _answer_done(self, message: Message, size: int, answer: Done) -> None:
        self.answer(message, size, OK, "OK")

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
        command = PeekMessages(
            self._place.log_id,
            self._sub_queue,
            asked.number("from-sequence-number"),
            min(asked.number("message-count", least=1), PEEK_LIMIT_MESSAGES),
            PEEK_LIMIT_BYTES,
            self._session_of(message, asked),
        )
        self._ask(message, size, command, MessagesReceived, partial(self._answer_messages, message, size, False))

    def _receive_deferred(self, message: Message, size: int, asked: Asked) -> None:
        mode = asked.receive_mode("receiver-settle-mode")
        numbers = asked.numbers("sequence-numbers")
        session_id = self._session_of(message, asked)
        command = ReceiveDeferred(self._place.log_id, self._sub_queue, numbers.tobytes(), mode, session_id)
        then = partial(self._answer_messages, message, size, True)
        late = self._release if mode is ReceiveMode.PEEK_LOCK else None
        self._ask(message, size, command, MessagesReceived, then, late=late)

    def _release(self, answer: MessagesReceived) -> None:
        """Give back messages that were locked for a client that heard nothing of it."""
        rows = array("q", answer.rows)
        tokens = tokens_of(rows, 0, len(rows) // MESSAGE_WIDTH)
        self._place.broker.submit(SettleMessages(self._place.log_id, tokens, SettleOutcome.RELEASE), lambda _: None)

    def _answer_messages(self, message: Message, size: int, with_tokens: bool, answer: MessagesReceived) -> None:
        if not answer.rows:
            self.answer(message, size, NOTHING, "No content")
            return
        maps = message_maps(answer.run, array("q", answer.rows), self._id_prefix, with_tokens=with_tokens)
        self.answer(message, size, OK, "OK", {"messages": maps})

    def _renew(self, message: Message, size: int, asked: Asked) -> None:
        def renewed(answer: LocksRenewed) -> None:
            until = array("q", answer.until_ms)
            if not all(until):
                raise lost_error(1)
            self.answer(message, size, OK, "OK", {"expirations": times_array(until)})

        self._ask(message, size, RenewLocks(self._place.log_id, asked.tokens("lock-tokens")), LocksRenewed, renewed)

    def _settle(self, message: Message, size: int, asked: Asked) -> None:
        def settled(answer: MessagesSettled) -> None:
            lost = [code for code in answer.codes if code]
            if lost:
                raise lost_error(lost[0], self._sub_queue)
            self.answer(message, size, OK, "OK")

        outcome, details = asked.settlement()
        command = SettleMessages(self._place.log_id, asked.tokens("lock-tokens"), outcome, details)
        self._ask(message, size, command, MessagesSettled, settled)

    def _settle_in(self, txn_id: bytes, message: Message, size: int, asked: Asked) -> None:
        outcome, details = asked.settlement()
        self.host.transactions.settle(txn_id, self._place, asked.tokens("lock-tokens"), outcome, details)
        self.answer(message, size, OK, "OK")

    def _schedule(self, message: Message, size: int, asked: Asked) -> None:
        messages = asked.messages("messages")
        run = scheduled_run(messages, self._place, None, needs_session=self._needs_session).run

        command = self._place.store(run, len(messages), sum(map(len, messages)))
        self._ask(message, size, command, MessagesEnqueued, partial(self._answer_numbers, message, size))

    def _answer_numbers(self, message: Message, size: int, answer: MessagesEnqueued) -> None:
        numbers = range(answer.first_number, answer.next_number)
        self.answer(message, size, OK, "OK", {"sequence-numbers": numbers_array(numbers)})

    def _schedule_in(self, txn_id: bytes, message: Message, size: int, asked: Asked) -> None:
        messages, transactions = asked.messages("messages"), self.host.transactions
        run = scheduled_run(messages, self._place, None, needs_session=self._needs_session).run
        transactions.check_schedules(txn_id, len(messages))

        def reserved(answer: MessagesEnqueued) -> None:
            transactions.schedule(txn_id, self._place, run, Reserved(answer.first_number, len(messages)))
            self._answer_numbers(message, size, answer)

        self._ask(message, size, ReserveNumbers(self._place.log_id, len(messages)), MessagesEnqueued, reserved)

    def _cancel(self, message: Message, size: int, asked: Asked) -> None:
        command = CancelScheduled(self._place.log_id, asked.numbers("sequence-numbers").tobytes())
        self._ask(message, size, command, Done, partial(self._answer_done, message, size))

    def _cancel_in(self, txn_id: bytes, message: Message, size: int, asked: Asked) -> None:
        self.host.transactions.cancel(txn_id, self._place, asked.numbers("sequence-numbers"))
        self.answer(message, size, OK, "OK")

    def _delete(self, message: Message, size: int, asked: Asked) -> None:
        before_ms = asked.optional_number("enqueued-time-utc")
        count = min(asked.number("message-count", least=1), DELETE_LIMIT_MESSAGES)
        command = DeleteMessages(
            self._place.log_id,
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

        self._ask(message, size, command, MessagesDeleted, deleted)

    def _renew_session(self, message: Message, size: int, asked: Asked) -> None:
        def renewed(answer: SessionRenewed) -> None:
            [until] = times_array([answer.locked_until_ms]).items
            self.answer(message, size, OK, "OK", {"expiration": until})

        command = RenewSession(self._place.log_id, asked.session_id())
        self._ask(message, size, command, SessionRenewed, renewed)

    def _set_state(self, message: Message, size: int, asked: Asked) -> None:
        state = asked.binary("session-state")
        if state is not None and len(state) > self._max_message_size_bytes:
            text = (
                f"The state of a session of '{self.entity}' has {len(state)} bytes, and may have "
                f"{self._max_message_size_bytes}, as a message."
            )
            raise ServiceError(MESSAGE_TOO_LARGE, text)
        command = SetSessionState(self._place.log_id, asked.session_id(), state)
        self._ask(message, size, command, Done, partial(self._answer_done, message, size))

    def _get_state(self, message: Message, size: int, asked: Asked) -> None:
        def found(answer: SessionStateRead) -> None:
            self.answer(message, size, OK, "OK", {"session-state": answer.state})

        self._ask(message, size, GetSessionState(self._place.log_id, asked.session_id()), SessionStateRead, found)

    def _list_sessions(self, message: Message, size: int, asked: Asked) -> None:
        updated_ms = asked.number("last-updated-time")
        skip, top = asked.number("skip"), min(asked.number("top", least=1), SESSIONS_LIMIT)
        command = ListSessions(self._place.log_id, None if updated_ms >= NEVER_MS else updated_ms, skip, top)

        def listed(answer: SessionsListed) -> None:
            if answer.session_ids:
                self.answer(message, size, OK, "OK", sessions_map(answer.session_ids, skip))
            else:
                self.answer(message, size, NOTHING, "No content")

        self._ask(message, size, command, SessionsListed, listed)

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
# What some do in a transaction, instead.
_TRANSACTED: dict[Step, Callable[[MessageManagementNode, bytes, Message, int, Asked], None]] = {
    MessageManagementNode._settle: MessageManagementNode._settle_in,
    MessageManagementNode._cancel: MessageManagementNode._cancel_in,
    MessageManagementNode._schedule: MessageManagementNode._schedule_in,
}
