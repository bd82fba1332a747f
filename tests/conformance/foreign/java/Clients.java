import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventDataBatch;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.CreateBatchOptions;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The clients that all checks share, and the few things that they do with them. */
final class Clients {
    static final String PLAIN = System.getenv("HUBWEIR_PLAIN");
    static final String HUB = System.getenv("HUBWEIR_HUB");
    static final String GROUP = EventHubClientBuilder.DEFAULT_CONSUMER_GROUP_NAME;
    static final Duration WAIT = Duration.ofSeconds(2);

    static final EventHubProducerClient PRODUCER = builder(PLAIN, HUB).buildProducerClient();
    static final EventHubConsumerClient CONSUMER = builder(PLAIN, HUB).consumerGroup(GROUP).buildConsumerClient();

    private static final int ATTEMPTS = 10;

    private Clients() {
    }

    /** The library's own defaults wait a minute for an answer. */
    static EventHubClientBuilder builder(String connectionString, String hub) {
        AmqpRetryOptions retry = new AmqpRetryOptions().setMaxRetries(3).setDelay(Duration.ofMillis(300))
            .setTryTimeout(Duration.ofSeconds(10));
        return new EventHubClientBuilder().connectionString(connectionString, hub).retryOptions(retry);
    }

    static CreateBatchOptions toPartition(String id) {
        return new CreateBatchOptions().setPartitionId(id);
    }

    static CreateBatchOptions byKey(String key) {
        return new CreateBatchOptions().setPartitionKey(key);
    }

    static void send(EventHubProducerClient to, CreateBatchOptions options, List<String> bodies) {
        EventDataBatch batch = to.createBatch(options);
        for (String body : bodies) {
            Checks.holds(batch.tryAdd(new EventData(body)), "the batch is full");
        }
        to.send(batch);
    }

    static void send(String partition, String... bodies) {
        send(PRODUCER, toPartition(partition), List.of(bodies));
    }

    /** The first count events from a position; fewer when none arrive any more. Each attempt is a new link. */
    static List<EventData> read(EventHubConsumerClient from, String partition, EventPosition start, int count) {
        List<EventData> events = new ArrayList<>();
        EventPosition next = start;
        for (int attempt = 0; attempt < ATTEMPTS && events.size() < count; attempt++) {
            for (PartitionEvent each : from.receiveFromPartition(partition, count - events.size(), next, WAIT)) {
                events.add(each.getData());
            }
            if (!events.isEmpty()) {
                next = EventPosition.fromSequenceNumber(events.get(events.size() - 1).getSequenceNumber());
            }
        }
        return events;
    }

    static List<String> bodies(List<EventData> events) {
        return events.stream().map(EventData::getBodyAsString).toList();
    }

    static long lastNumber(String partition) {
        return PRODUCER.getPartitionProperties(partition).getLastEnqueuedSequenceNumber();
    }

    static EventPosition tail(String partition) {
        return EventPosition.fromSequenceNumber(lastNumber(partition));
    }
}
