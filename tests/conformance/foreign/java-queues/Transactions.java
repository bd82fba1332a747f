import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Sends and settlements that are committed or rolled back together. */
final class Transactions {
    private static final int SENT_LIMIT = 100;

    private Transactions() {
    }

    static void run() {
        Checks.check("transaction_commits_what_it_sent_and_completed", Transactions::committed);
        Checks.check("transaction_rolls_back_what_it_sent_and_completed", Transactions::rolledBack);
        Checks.check("transaction_sends_messages_and_batches", Transactions::many);
        Checks.check("transaction_abandons_defers_and_dead_letters", Transactions::settled);
        Checks.check("message_101_of_a_transaction_is_refused", Transactions::tooMany);
        Checks.check("transaction_that_is_over_is_unknown", Transactions::unknown);
        Checks.check("transaction_over_two_queues_moves_a_message", Transactions::moved);
        Checks.check("transaction_sends_to_several_queues", Transactions::several);
        Checks.check("transaction_schedules_messages", Transactions::scheduled);
        Checks.check("transaction_keeps_to_one_key_of_a_partitioned_queue", Transactions::oneKey);
    }

    /** A sender and a receiver on one connection: a transaction is of that connection. */
    private interface Pair {
        void with(ServiceBusSenderClient to, ServiceBusReceiverClient from) throws Exception;
    }

    private static void pair(ServiceBusClientBuilder builder, String target, String source, Pair body) throws Exception {
        try (ServiceBusReceiverClient from = builder.receiver().queueName(source)
                .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
            ServiceBusSenderClient to = builder.sender().queueName(target).buildClient()) {
            body.with(to, from);
        }
    }

    private static void pair(String queue, Pair body) throws Exception {
        pair(Queues.builder(Queues.PLAIN), queue, queue, body);
    }

    private static CompleteOptions completing(ServiceBusTransactionContext transaction) {
        return new CompleteOptions().setTransactionContext(transaction);
    }

    private static void committed() throws Exception {
        Queues.send("committing", Queues.message("request"));
        pair("committing", (to, from) -> {
            ServiceBusReceivedMessage request = Queues.receiveOne(from);
            ServiceBusTransactionContext transaction = to.createTransaction();
            to.sendMessage(Queues.message("answer"), transaction);
            from.complete(request, completing(transaction));
            Checks.same(Queues.bodies(Queues.peek(from)), List.of("request"));
            to.commitTransaction(transaction);
            ServiceBusReceivedMessage answer = Queues.receiveOne(from);
            Checks.same(answer.getBody().toString(), "answer");
            from.complete(answer);
            Queues.isGone(from); // the request neither
        });
    }

    /** The lock goes on behind a rollback. This client settles no message object twice, so it waits for its end. */
    private static void rolledBack() throws Exception {
        Queues.send("rolling-back", Queues.message("request"));
        pair("rolling-back", (to, from) -> {
            ServiceBusReceivedMessage request = Queues.receiveOne(from);
            ServiceBusTransactionContext transaction = from.createTransaction();
            to.sendMessage(Queues.message("answer"), transaction);
            from.complete(request, completing(transaction));
            from.rollbackTransaction(transaction);
            ServiceBusReceivedMessage again = Queues.receiveOne(from);
            Checks.same(List.of(again.getBody().toString(), again.getDeliveryCount()), List.of("request", 1L));
            ServiceBusTransactionContext second = from.createTransaction();
            from.complete(again, completing(second));
            from.commitTransaction(second);
            Queues.isEmpty(from);
            Queues.isGone(from);
        });
    }

    private static void many() throws Exception {
        pair("many-sends", (to, from) -> {
            ServiceBusTransactionContext transaction = to.createTransaction();
            to.sendMessages(List.of(Queues.message("a"), Queues.message("b")), transaction);
            ServiceBusMessageBatch batch = to.createMessageBatch();
            Checks.holds(batch.tryAddMessage(Queues.message("c")) && batch.tryAddMessage(Queues.message("d")), "no room");
            to.sendMessages(batch, transaction);
            to.sendMessage(Queues.message("e"), transaction);
            Queues.isGone(from);
            to.commitTransaction(transaction);
            Checks.same(Queues.bodies(Queues.receive(from, 5)), List.of("a", "b", "c", "d", "e"));
        });
    }

    /** This client takes a send that is refused in a transaction for one that is done, and hears of it at the commit. */
    private static void oneKey() throws Exception {
        pair("one-key", (to, from) -> {
            ServiceBusTransactionContext spoilt = to.createTransaction();
            to.sendMessage(Queues.message("a").setPartitionKey("key"), spoilt);
            to.sendMessage(Queues.message("b").setPartitionKey("other"), spoilt);
            Checks.refused(ServiceBusException.class, () -> to.commitTransaction(spoilt));
            ServiceBusTransactionContext kept = to.createTransaction();
            to.sendMessage(Queues.message("c").setPartitionKey("key"), kept);
            to.sendMessage(Queues.message("d").setSessionId("key"), kept);
            to.commitTransaction(kept);
            Checks.same(Queues.bodies(Queues.receive(from, 2)), List.of("c", "d"));
        });
    }

    private static void settled() throws Exception {
        Queues.send("settling", Queues.message("abandoned"), Queues.message("deferred"), Queues.message("dead"));
        pair("settling", (to, from) -> {
            List<ServiceBusReceivedMessage> got = Queues.receive(from, 3);
            ServiceBusTransactionContext transaction = from.createTransaction();
            from.abandon(got.get(0),
                new AbandonOptions().setPropertiesToModify(Map.of("tried", 1)).setTransactionContext(transaction));
            from.defer(got.get(1), new DeferOptions().setTransactionContext(transaction));
            from.deadLetter(got.get(2), new DeadLetterOptions().setDeadLetterReason("broken")
                .setDeadLetterErrorDescription("no wheels").setTransactionContext(transaction));
            Queues.isEmpty(from);
            from.commitTransaction(transaction);
            ServiceBusReceivedMessage again = Queues.receiveOne(from);
            Checks.same(List.of(again.getBody().toString(), again.getDeliveryCount()), List.of("abandoned", 1L));
            Checks.same(again.getApplicationProperties(), Map.of("tried", 1));
            from.complete(again);
            // A deferred message is settled through the management node, in a transaction, too.
            ServiceBusReceivedMessage deferred = from.receiveDeferredMessage(got.get(1).getSequenceNumber());
            ServiceBusTransactionContext second = from.createTransaction();
            from.complete(deferred, completing(second));
            Checks.same(Queues.bodies(Queues.peek(from)), List.of("deferred"));
            from.commitTransaction(second);
            Queues.isGone(from);
        });
        Queues.deadLetters("settling", from -> {
            ServiceBusReceivedMessage dead = Queues.receiveOne(from);
            Checks.same(List.of(dead.getBody().toString(), dead.getDeadLetterReason(), dead.getDeadLetterErrorDescription()),
                List.of("dead", "broken", "no wheels"));
        });
    }

    /** This client takes every answer to a send in a transaction for success: it hears of a refusal at the commit. */
    private static void tooMany() throws Exception {
        List<ServiceBusMessage> messages = new ArrayList<>();
        for (int number = 0; number < SENT_LIMIT; number++) {
            messages.add(Queues.message(String.valueOf(number)));
        }
        pair("too-many", (to, from) -> {
            ServiceBusTransactionContext transaction = to.createTransaction();
            to.sendMessages(messages, transaction);
            to.sendMessage(Queues.message("one more"), transaction);
            refused("Can't send more than 100 messages in a single transaction", () -> to.commitTransaction(transaction));
            Queues.isGone(from);
            ServiceBusTransactionContext second = to.createTransaction();
            to.sendMessages(messages, second);
            to.commitTransaction(second);
            Checks.same(Queues.receive(from, SENT_LIMIT).size(), SENT_LIMIT);
            Queues.isEmpty(from);
        });
    }

    private static void unknown() throws Exception {
        Queues.send("no-transaction", Queues.message("kept"));
        pair("no-transaction", (to, from) -> {
            ServiceBusTransactionContext transaction = to.createTransaction();
            to.commitTransaction(transaction);
            to.sendMessage(Queues.message("late"), transaction);
            Checks.same(Queues.bodies(Queues.peek(from)), List.of("kept"));
            ServiceBusReceivedMessage kept = Queues.receiveOne(from);
            for (Checks.Body body : List.<Checks.Body>of(() -> from.complete(kept, completing(transaction)),
                () -> to.commitTransaction(transaction), () -> to.rollbackTransaction(transaction))) {
                refused("No transaction of this id is open", body);
            }
            Checks.same(Queues.bodies(Queues.peek(from)), List.of("kept"));
        });
    }

    /** The body must throw the client's exception, with this among its words. */
    private static void refused(String text, Checks.Body body) throws Exception {
        String said = String.valueOf(Checks.refused(ServiceBusException.class, body));
        Checks.holds(said.contains(text), said);
    }

    private static void moved() throws Exception {
        Queues.send("orders-in", Queues.message("kept"), Queues.message("moved"));
        ServiceBusClientBuilder builder = Queues.builder(Queues.PLAIN).enableCrossEntityTransactions();
        pair(builder, "orders-out", "orders-in", (to, from) -> {
            List<ServiceBusReceivedMessage> got = Queues.receive(from, 2);
            ServiceBusTransactionContext first = from.createTransaction();
            from.complete(got.get(0), completing(first));
            to.sendMessage(Queues.message("never"), first);
            from.rollbackTransaction(first);
            ServiceBusTransactionContext second = from.createTransaction();
            from.complete(got.get(1), completing(second));
            to.sendMessage(Queues.message("moved"), second);
            from.commitTransaction(second);
            Checks.same(Queues.bodies(Queues.peek(from)), List.of("kept"));
        });
        Queues.receiving("orders-out", from -> {
            Checks.same(Queues.receiveOne(from).getBody().toString(), "moved");
            Queues.isEmpty(from);
        });
    }

    private static void several() throws Exception {
        Queues.send("requests", Queues.message("first"), Queues.message("second"));
        ServiceBusClientBuilder builder = Queues.builder(Queues.PLAIN).enableCrossEntityTransactions();
        try (ServiceBusSenderClient notices = builder.sender().queueName("notices").buildClient()) {
            pair(builder, "answers", "requests", (answers, from) -> {
                List<ServiceBusReceivedMessage> got = Queues.receive(from, 2);
                ServiceBusTransactionContext first = from.createTransaction();
                answers.sendMessage(Queues.message("never"), first);
                notices.sendMessage(Queues.message("never"), first);
                from.complete(got.get(0), completing(first));
                from.rollbackTransaction(first);
                ServiceBusTransactionContext second = from.createTransaction();
                answers.sendMessage(Queues.message("answer"), second);
                notices.sendMessages(List.of(Queues.message("notice"), Queues.message("another")), second);
                from.complete(got.get(1), completing(second));
                from.commitTransaction(second);
                Checks.same(Queues.bodies(Queues.peek(from)), List.of("first"));
            });
        }
        Queues.receiving("answers", from -> {
            Checks.same(Queues.receiveOne(from).getBody().toString(), "answer");
            Queues.isEmpty(from);
        });
        Queues.receiving("notices", from -> {
            Checks.same(Queues.bodies(Queues.receive(from, 2)), List.of("notice", "another"));
            Queues.isEmpty(from);
        });
    }

    private static void scheduled() throws Exception {
        pair("scheduling-in", (to, from) -> {
            OffsetDateTime soon = OffsetDateTime.now().plusSeconds(5);
            OffsetDateTime late = OffsetDateTime.now().plusHours(1);
            ServiceBusTransactionContext first = to.createTransaction();
            to.scheduleMessage(Queues.message("never"), soon, first);
            to.rollbackTransaction(first);
            ServiceBusTransactionContext second = to.createTransaction();
            to.scheduleMessage(Queues.message("soon"), soon, second);
            long number = to.scheduleMessage(Queues.message("late"), late, second);
            Queues.isGone(from);
            to.commitTransaction(second);
            Checks.same(Queues.bodies(Queues.peek(from)), List.of("soon", "late"));
            to.cancelScheduledMessage(number);
            ServiceBusReceivedMessage got = Queues.receiveOne(from);
            Checks.same(got.getBody().toString(), "soon");
            from.complete(got);
            Queues.isGone(from);
        });
    }
}
