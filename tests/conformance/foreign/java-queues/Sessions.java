import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import java.nio.charset.StandardCharsets;
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
                ServiceBusReceiverClient from = sessions.acceptSession("a")) {
                Checks.same(from.getSessionId(), "a");
                Checks.same(Queues.bodies(Queues.receive(from, 3)), List.of("a1", "a2", "a3"));
            }
        });
        Checks.check("next_session_is_the_oldest_and_none_is_a_timeout", () -> {
            Queues.send("next-session", Queues.of("first", "1"), Queues.of("second", "2"));
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("next-session");
                ServiceBusReceiverClient one = sessions.acceptNextSession();
                ServiceBusReceiverClient two = sessions.acceptNextSession()) {
                Checks.same(List.of(one.getSessionId(), two.getSessionId()), List.of("first", "second"));
                Checks.refused(IllegalStateException.class, sessions::acceptNextSession);
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
                Checks.holds(from.renewSessionLock().isAfter(before), "the lock does not end later");
            }
        });
        Checks.check("session_state_is_kept_and_cleared", () -> {
            try (ServiceBusSessionReceiverClient sessions = Queues.sessions("state");
                ServiceBusReceiverClient from = sessions.acceptSession("s")) {
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
        Checks.check("switched_off_queue_is_disabled", () -> {
            try (ServiceBusSenderClient to = Queues.sender("no-sends")) {
                Queues.refused(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, () -> to.sendMessage(Queues.message("x")));
            }
        });
    }
}
