import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Receiving, settling, locks, peek and schedules. */
final class Settling {
    private Settling() {
    }

    static void run() {
        Checks.check("received_and_deleted_messages_are_gone", () -> {
            Queues.send("deleting", Queues.message("a"), Queues.message("b"));
            Queues.deleting("deleting", from -> {
                Checks.same(Queues.bodies(Queues.receive(from, 2)), List.of("a", "b"));
                Queues.isGone(from);
            });
        });
        Checks.check("empty_queue_returns_in_time", () -> Queues.receiving("empty", from -> {
            Queues.isEmpty(from);
            Queues.send("empty", Queues.message("later"));
            Checks.same(Queues.receiveOne(from).getBody().toString(), "later");
        }));
        Checks.check("completed_message_is_gone", () -> {
            Queues.send("completing", Queues.message("x"));
            Queues.receiving("completing", from -> {
                from.complete(Queues.receiveOne(from));
                Queues.isEmpty(from);
                Queues.isGone(from);
            });
        });
        Checks.check("abandoned_message_comes_again_with_its_new_properties", Settling::abandon);
        Checks.check("deferred_message_is_received_by_number", Settling::defer);
        Checks.check("dead_lettered_message_says_why", Settling::deadLetter);
        Checks.check("expired_message_is_dead_lettered", () -> {
            Queues.send("expiring", Queues.message("x").setTimeToLive(Duration.ofSeconds(1)));
            Queues.deadLetters("expiring",
                from -> {
                    ServiceBusReceivedMessage dead = Queues.receiveOne(from);
                    Checks.same(dead.getBody().toString() + dead.getDeadLetterReason(), "xTTLExpiredException");
                    Duration there = Duration.between(dead.getEnqueuedTime(), OffsetDateTime.now());
                    Checks.holds(there.toMillis() >= 1_000, "it was there for " + there);
                });
            Queues.receiving("expiring", Queues::isGone);
        });
        Checks.check("lock_is_renewed", () -> {
            Queues.send("locks", Queues.message("renewed"));
            Queues.receiving("locks", from -> {
                ServiceBusReceivedMessage got = Queues.receiveOne(from);
                OffsetDateTime before = got.getLockedUntil();
                Thread.sleep(3_000);
                Checks.holds(from.renewMessageLock(got).isAfter(before), "the lock does not end later");
                Thread.sleep(3_000);
                from.complete(got);
                Queues.isGone(from);
            });
        });
        Checks.check("lock_that_ended_is_lost", () -> {
            Queues.send("locks", Queues.message("lost"));
            Queues.receiving("locks", from -> {
                ServiceBusReceivedMessage got = Queues.receiveOne(from);
                Thread.sleep(5_500);
                Queues.refused(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> from.complete(got));
                ServiceBusReceivedMessage again = Queues.receiveOne(from);
                Checks.same(again.getBody().toString() + again.getDeliveryCount(), "lost1");
                from.complete(again);
                Queues.isGone(from);
            });
        });
        Checks.check("peek_of_an_empty_queue_is_quick", () -> Queues.receiving("peeking", from -> {
            long begin = System.nanoTime();
            Queues.isGone(from);
            Checks.holds(System.nanoTime() - begin < 3_000_000_000L, "it took longer than three seconds");
        }));
        Checks.check("peek_shows_every_state", Settling::peek);
        Checks.check("scheduled_message_comes_in_time_and_a_cancelled_one_never", Settling::schedule);
        Checks.check("duplicate_is_stored_once", () -> {
            Queues.send("duplicates", Queues.message("first").setMessageId("id"), Queues.message("second").setMessageId("id"),
                Queues.message("other").setMessageId("other"));
            Queues.receiving("duplicates", from -> {
                Checks.same(Queues.bodies(Queues.receive(from, 2)), List.of("first", "other"));
                Queues.isEmpty(from);
            });
        });
        Checks.check("key_or_turn_chooses_the_fragment", Settling::spread);
    }

    private static void spread() throws Exception {
        Queues.send("spread", Queues.message("a").setPartitionKey("key"), Queues.message("b").setPartitionKey("key"),
            Queues.message("0"), Queues.message("1"), Queues.message("2"));
        Queues.receiving("spread", from -> {
            Map<String, Long> fragments = new HashMap<>();
            Queues.receive(from, 5).forEach(
                each -> fragments.put(each.getBody().toString(), each.getSequenceNumber() >> 48));
            Checks.same(fragments.get("a"), fragments.get("b"));
            long first = fragments.get("0");
            Checks.same(List.of(fragments.get("1"), fragments.get("2")), List.of((first + 1) % 16, (first + 2) % 16));
        });
    }

    private static void abandon() throws Exception {
        ServiceBusMessage sent = Queues.message("x");
        sent.getApplicationProperties().putAll(Map.of("kept", 1, "changed", "before"));
        Queues.send("abandoning", sent, Queues.message("behind it"));
        Queues.receiving("abandoning", from -> {
            from.abandon(Queues.receiveOne(from),
                new AbandonOptions().setPropertiesToModify(Map.of("changed", "after", "added", true)));
            List<ServiceBusReceivedMessage> got = Queues.receive(from, 2);
            ServiceBusReceivedMessage again = got.get(0);
            // At its old place, with its old number.
            Checks.same(Queues.bodies(got), List.of("x", "behind it"));
            Checks.same(List.of(again.getDeliveryCount(), again.getSequenceNumber()), List.of(1L, 1L));
            Checks.same(again.getApplicationProperties(), Map.of("kept", 1, "changed", "after", "added", true));
            Checks.same(got.get(1).getDeliveryCount(), 0L);
            got.forEach(from::complete);
            Queues.isGone(from);
        });
    }

    private static void defer() throws Exception {
        Queues.send("deferring", Queues.message("x"));
        Queues.receiving("deferring", from -> {
            ServiceBusReceivedMessage got = Queues.receiveOne(from);
            from.defer(got);
            Queues.isEmpty(from);
            ServiceBusReceivedMessage deferred = from.receiveDeferredMessage(got.getSequenceNumber());
            Checks.same(deferred.getState(), ServiceBusMessageState.DEFERRED);
            from.complete(deferred);
            // This client has no reason of its own for message-not-found.
            Checks.refused(ServiceBusException.class, () -> from.receiveDeferredMessage(got.getSequenceNumber()));
            Queues.isGone(from);
        });
    }

    private static void deadLetter() throws Exception {
        Queues.send("dead", Queues.message("reason"), Queues.message("none"));
        Queues.receiving("dead", from -> {
            List<ServiceBusReceivedMessage> got = Queues.receive(from, 2);
            from.deadLetter(got.get(0), new DeadLetterOptions().setDeadLetterReason("broken")
                .setDeadLetterErrorDescription("no wheels").setPropertiesToModify(Map.of("own", 1)));
            from.deadLetter(got.get(1));
            Queues.isGone(from);
        });
        Queues.deadLetters("dead", from -> {
            List<ServiceBusReceivedMessage> got = Queues.receive(from, 2);
            Checks.same(List.of(got.get(0).getBody().toString(), got.get(0).getDeadLetterReason(),
                got.get(0).getDeadLetterErrorDescription()), List.of("reason", "broken", "no wheels"));
            Checks.same(got.get(0).getApplicationProperties().get("own"), 1);
            Checks.same(got.get(1).getBody().toString() + got.get(1).getDeadLetterReason(), "nonenull");
            got.forEach(from::complete);
            Queues.isGone(from);
        });
    }

    private static void peek() throws Exception {
        Queues.send("peeking", Queues.message("deferred"), Queues.message("active"));
        try (ServiceBusSenderClient to = Queues.sender("peeking")) {
            to.scheduleMessage(Queues.message("scheduled"), OffsetDateTime.now().plusHours(1));
        }
        Queues.receiving("peeking", from -> {
            from.defer(Queues.receiveOne(from));
            List<ServiceBusReceivedMessage> got = Queues.peek(from);
            Checks.same(Queues.bodies(got), List.of("deferred", "active", "scheduled"));
            Checks.same(got.stream().map(ServiceBusReceivedMessage::getState).toList(), List.of(
                ServiceBusMessageState.DEFERRED, ServiceBusMessageState.ACTIVE, ServiceBusMessageState.SCHEDULED));
            Checks.same(Queues.receiveOne(from).getBody().toString(), "active");
        });
    }

    private static void schedule() throws Exception {
        OffsetDateTime due = OffsetDateTime.now().withNano(0).plusSeconds(3);
        try (ServiceBusSenderClient to = Queues.sender("scheduling")) {
            to.scheduleMessage(Queues.message("x"), due);
            to.cancelScheduledMessage(to.scheduleMessage(Queues.message("cancelled"), due));
        }
        Queues.receiving("scheduling", from -> {
            ServiceBusReceivedMessage got = Queues.receiveOne(from);
            Duration late = Duration.between(due, OffsetDateTime.now());
            Checks.holds(!late.isNegative() && late.toMillis() < 1_000, "it came " + late + " behind its time");
            Checks.same(got.getBody().toString(), "x");
            Checks.same(got.getEnqueuedTime().toEpochSecond(), due.toEpochSecond());
            from.complete(got);
            Queues.isEmpty(from);
            Queues.isGone(from);
        });
    }
}
