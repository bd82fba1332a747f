import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;

/** Message sessions, and what is refused. */
final class Sessions {
    private Sessions() {
    }

    static void run() {
        Checks.check("named_session_is_received_in_order", () -> {
            Queues.send("named-session", Queues.of("a", "a1"), Queues.of("b", "b1"), Queues.of("a", "a2"), Queues.of("a", "a3"));
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("named-session");
                ServiceBusReceiverClient empty = sessions.acceptSession("nothing in it");
                ServiceBusReceiverClient from = sessions.acceptSession("a")) {
                Queues.isEmpty(empty);
                Checks.same(from.getSessionId(), "a");
                from.abandon(Queues.receiveOne(from)); // and it stays the first
                List<ServiceBusReceivedMessage> got = Queues.receive(from, 3);
                Checks.same(Queues.bodies(got), List.of("a1", "a2", "a3"));
                Checks.same(got.stream().map(ServiceBusReceivedMessage::getDeliveryCount).toList(), List.of(1L, 0L, 0L));
            }
        });
        Checks.check("next_session_is_the_oldest", () -> {
            Queues.send("next-session", Queues.of("first", "1"), Queues.of("second", "2"));
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("next-session");
                ServiceBusReceiverClient one = sessions.acceptNextSession();
                ServiceBusReceiverClient two = sessions.acceptNextSession()) {
                Checks.same(List.of(one.getSessionId(), two.getSessionId()), List.of("first", "second"));
            }
        });
        Checks.check("held_session_cannot_be_locked", () -> {
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("held-session");
                ServiceBusSessionReceiverClient others = Queues.sessions("held-session");
                ServiceBusReceiverClient held = sessions.acceptSession("s")) {
                AmqpException refusal = Checks.refused(AmqpException.class, () -> others.acceptSession("s"));
                Checks.same(refusal.getErrorCondition().getErrorCondition(), "com.microsoft:session-cannot-be-locked");
            }
        });
        Checks.check("renewed_session_lock_ends_later", () -> {
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("held-session");
                ServiceBusReceiverClient from = sessions.acceptSession("renewed")) {
                OffsetDateTime before = from.renewSessionLock();
                Thread.sleep(50);
                Duration later = Duration.between(before, from.renewSessionLock());
                Checks.holds(later.toMillis() >= 50 && later.toSeconds() < 50, "the lock ends later by " + later);
            }
        });
        Checks.check("session_state_is_kept_and_cleared", () -> {
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("state");
                ServiceBusReceiverClient from = sessions.acceptSession("s")) {
                Checks.same(from.getSessionState(), null);
                from.setSessionState("état".getBytes(StandardCharsets.UTF_8));
            }
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("state");
                ServiceBusReceiverClient from = sessions.acceptSession("s")) {
                Checks.same(new String(from.getSessionState(), StandardCharsets.UTF_8), "état");
                from.setSessionState(null);
                Checks.same(from.getSessionState(), null);
            }
        });
        Checks.check("missing_queue_is_not_found", () -> {
            try (ServiceBusSenderClient to = Queues.sender("nowhere")) {
                Queues.refused(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> to.sendMessage(Queues.message("x")));
            }
        });
        Checks.check("queue_without_sends_is_disabled", () -> {
            try (ServiceBusSenderClient to = Queues.sender("no-sends")) {
                Queues.refused(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, () -> to.sendMessage(Queues.message("x")));
            }
        });
    }
}
