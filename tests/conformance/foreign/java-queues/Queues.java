import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/** The builders that all checks share, and the few things that they do with their clients. */
final class Queues {
    static final String PLAIN = System.getenv("HUBWEIR_PLAIN");
    private static final Duration WAIT = Duration.ofSeconds(15);
    private static final Duration QUIET = Duration.ofMillis(500);

    private Queues() {
    }

    /** The library's own defaults wait a minute for an answer. */
    static ServiceBusClientBuilder builder(String connectionString) {
        AmqpRetryOptions retry = new AmqpRetryOptions().setMaxRetries(1).setDelay(Duration.ofMillis(200))
            .setTryTimeout(Duration.ofSeconds(10));
        return new ServiceBusClientBuilder().connectionString(connectionString).retryOptions(retry);
    }

    static ServiceBusMessage message(String body) {
        return new ServiceBusMessage(body);
    }

    static ServiceBusMessage of(String session, String body) {
        return message(body).setSessionId(session);
    }

    static ServiceBusSenderClient sender(String queue) {
        return builder(PLAIN).sender().queueName(queue).buildClient();
    }

    static void send(String queue, ServiceBusMessage... messages) {
        try (ServiceBusSenderClient to = sender(queue)) {
            for (ServiceBusMessage each : messages) {
                to.sendMessage(each);
            }
        }
    }

    interface Use<T> {
        void with(T value) throws Exception;
    }

    /** Do something with a receiver of a queue that renews no locks by itself. */
    static void receiving(String queue, UnaryOperator<ServiceBusClientBuilder.ServiceBusReceiverClientBuilder> options,
        Use<ServiceBusReceiverClient> body) throws Exception {
        try (ServiceBusReceiverClient from = options.apply(builder(PLAIN).receiver().queueName(queue)
            .maxAutoLockRenewDuration(Duration.ZERO)).buildClient()) {
            body.with(from);
        }
    }

    static void receiving(String queue, Use<ServiceBusReceiverClient> body) throws Exception {
        receiving(queue, options -> options, body);
    }

    static void deadLetters(String queue, Use<ServiceBusReceiverClient> body) throws Exception {
        receiving(queue, options -> options.subQueue(SubQueue.DEAD_LETTER_QUEUE), body);
    }

    static void deleting(String queue, Use<ServiceBusReceiverClient> body) throws Exception {
        receiving(queue, options -> options.receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE), body);
    }

    static ServiceBusSessionReceiverClient sessions(String queue) {
        return builder(PLAIN).sessionReceiver().queueName(queue).maxAutoLockRenewDuration(Duration.ZERO).buildClient();
    }

    /** The next messages, exactly so many. */
    static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient from, int count) {
        List<ServiceBusReceivedMessage> got = new ArrayList<>();
        while (got.size() < count) {
            int before = got.size();
            from.receiveMessages(count - before, WAIT).forEach(got::add);
            Checks.holds(got.size() > before, before + " of " + count + " came");
        }
        return got;
    }

    static ServiceBusReceivedMessage receiveOne(ServiceBusReceiverClient from) {
        return receive(from, 1).get(0);
    }

    static void isEmpty(ServiceBusReceiverClient from) {
        Checks.same(bodies(from.receiveMessages(1, QUIET).stream().toList()), List.of());
    }

    /** There is nothing at all, also nothing that is locked: what is only kept from this receiver would be seen. */
    static void isGone(ServiceBusReceiverClient from) {
        Checks.same(bodies(peek(from)), List.of());
    }

    static List<ServiceBusReceivedMessage> peek(ServiceBusReceiverClient from) {
        return from.peekMessages(10, 1).stream().toList();
    }

    static List<String> bodies(List<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(ServiceBusReceivedMessage::getBody).map(BinaryData::toString).toList();
    }

    /** The body must throw the client's exception with this reason. */
    static void refused(ServiceBusFailureReason reason, Checks.Body body) throws Exception {
        Checks.same(Checks.refused(ServiceBusException.class, body).getReason(), reason);
    }
}
