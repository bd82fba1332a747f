import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Connecting, and what a message carries. */
final class Messages {
    private Messages() {
    }

    static void run() {
        Checks.check("connects_over_plain_tcp", () -> roundTrip(Queues.builder(Queues.PLAIN), "plain"));
        Checks.check("connects_over_tls", () -> roundTrip(overTls(), "tls"));
        Checks.check("connects_over_websocket",
            () -> roundTrip(overTls().transportType(AmqpTransportType.AMQP_WEB_SOCKETS), "websocket"));
        Checks.check("wrong_key_is_unauthorised", () -> {
            try (ServiceBusSenderClient to = Queues.builder(System.getenv("HUBWEIR_WRONG_KEY")).sender()
                .queueName("plain").buildClient()) {
                Queues.refused(ServiceBusFailureReason.UNAUTHORIZED, () -> to.sendMessage(Queues.message("x")));
            }
        });
        Checks.check("single_message_keeps_body_and_properties", Messages::properties);
        Checks.check("message_sent_again_is_a_new_one", Messages::again);
        Checks.check("batch_is_its_messages_in_order", Messages::batch);
        Checks.check("batch_limit_is_a_quarter_mebibyte", () -> {
            try (ServiceBusSenderClient to = Queues.sender("small")) {
                Checks.same(to.createMessageBatch().getMaxSizeInBytes(), 262_144);
            }
        });
        Checks.check("oversize_is_refused", () -> {
            try (ServiceBusSenderClient to = Queues.sender("small")) {
                ServiceBusMessage large = new ServiceBusMessage(BinaryData.fromBytes(new byte[1_000_000]));
                Queues.refused(ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED, () -> to.sendMessage(large));
                to.sendMessage(Queues.message("after it"));
            }
            Queues.receiving("small", from -> Checks.same(Queues.bodies(Queues.peek(from)), List.of("after it")));
        });
    }

    private static ServiceBusClientBuilder overTls() {
        String host = System.getenv("HUBWEIR_HOST");
        String port = System.getenv("HUBWEIR_PORT");
        return Queues.builder(System.getenv("HUBWEIR_TLS")).customEndpointAddress("https://" + host + ":" + port);
    }

    private static void roundTrip(ServiceBusClientBuilder by, String queue) {
        try (ServiceBusSenderClient to = by.sender().queueName(queue).buildClient();
            ServiceBusReceiverClient from = by.receiver().queueName(queue).buildClient()) {
            to.sendMessage(Queues.message("hello"));
            ServiceBusReceivedMessage got = Queues.receiveOne(from);
            Checks.same(got.getBody().toString(), "hello");
            from.complete(got);
        }
    }

    private static void properties() throws Exception {
        ServiceBusMessage sent = Queues.message("body").setMessageId("id").setContentType("text/plain")
            .setCorrelationId("correlation").setSubject("subject").setTo("to").setReplyTo("reply to")
            .setReplyToSessionId("reply session").setSessionId("key").setPartitionKey("key")
            .setTimeToLive(Duration.ofMinutes(10));
        Map<String, Object> own = Map.of("int", 1, "long", 1L << 40, "real", 0.5, "text", "é", "yes", true, "char", 'c',
            "byte", (byte) -3);
        sent.getApplicationProperties().putAll(own);
        Queues.send("single", sent);
        Queues.receiving("single", from -> {
            ServiceBusReceivedMessage got = Queues.receiveOne(from);
            Checks.same(got.getBody().toString(), "body");
            Checks.same(got.getApplicationProperties(), own);
            Checks.same(
                List.of(got.getMessageId(), got.getContentType(), got.getCorrelationId(), got.getSubject(), got.getTo(),
                    got.getReplyTo(), got.getReplyToSessionId(), got.getSessionId(), got.getPartitionKey()),
                List.of("id", "text/plain", "correlation", "subject", "to", "reply to", "reply session", "key", "key"));
            Checks.same(got.getTimeToLive(), Duration.ofMinutes(10));
            Checks.same(Duration.between(got.getEnqueuedTime(), got.getExpiresAt()), Duration.ofMinutes(10));
            Checks.same(got.getDeliveryCount(), 0L);
            from.complete(got);
        });
    }

    private static void again() throws Exception {
        ServiceBusMessage sent = Queues.message("x").setSubject("s").setMessageId("id");
        sent.getApplicationProperties().put("own", 1);
        Queues.send("again", sent);
        Queues.receiving("again", from -> {
            from.abandon(Queues.receiveOne(from));
            ServiceBusReceivedMessage first = Queues.receiveOne(from);
            Queues.send("again", new ServiceBusMessage(first));
            ServiceBusReceivedMessage second = Queues.receiveOne(from);
            Checks.same(second.getBody().toString() + second.getSubject() + second.getApplicationProperties(), "xs{own=1}");
            Checks.same(second.getMessageId(), "id");
            Checks.same(List.of(first.getDeliveryCount(), second.getDeliveryCount()), List.of(1L, 0L));
            Checks.holds(second.getSequenceNumber() > first.getSequenceNumber(), "it has no new number");
            Checks.holds(!second.getLockToken().equals(first.getLockToken()), "it has no new lock");
        });
    }

    private static void batch() throws Exception {
        try (ServiceBusSenderClient to = Queues.sender("batch")) {
            ServiceBusMessageBatch batch = to.createMessageBatch();
            Checks.holds(batch.tryAddMessage(Queues.message("a").setSubject("first")), "the batch is full");
            Checks.holds(batch.tryAddMessage(Queues.message("b")), "the batch is full");
            to.sendMessages(batch);
            to.sendMessages(List.of(Queues.message("c"), Queues.message("d")));
        }
        Queues.receiving("batch", from -> {
            List<ServiceBusReceivedMessage> got = Queues.receive(from, 4);
            Checks.same(Queues.bodies(got), List.of("a", "b", "c", "d"));
            Checks.same(got.stream().map(ServiceBusReceivedMessage::getSequenceNumber).toList(), List.of(1L, 2L, 3L, 4L));
            Checks.same(got.get(0).getSubject() + got.get(1).getSubject(), "firstnull");
            Queues.isEmpty(from);
        });
    }
}
