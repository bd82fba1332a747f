import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.models.EventPosition;
import java.time.Duration;

/** Hubs, groups and partitions that are not there. */
final class Refusals {
    private static final String ENTITY = "could not be found";
    private static final String PARTITION =
        "The specified partition is invalid for an EventHub partition sender or receiver";

    private Refusals() {
    }

    static void run() {
        EventHubClientBuilder missing = Clients.builder(Clients.PLAIN, "no-such-hub").consumerGroup(Clients.GROUP);
        Checks.check("missing_hub_is_not_found_by_sender", () -> {
            try (var client = missing.buildProducerClient()) {
                refused(AmqpErrorCondition.NOT_FOUND, ENTITY, client::createBatch);
            }
        });
        Checks.check("missing_hub_is_not_found_by_properties", () -> {
            try (var client = missing.buildProducerClient()) {
                refused(AmqpErrorCondition.NOT_FOUND, ENTITY, client::getEventHubProperties);
            }
        });
        Checks.check("missing_hub_is_not_found_by_receiver", () -> {
            try (var client = missing.buildAsyncConsumerClient()) {
                refused(AmqpErrorCondition.NOT_FOUND, ENTITY,
                    () -> client.receiveFromPartition("0", EventPosition.earliest()).blockFirst(Duration.ofSeconds(20)));
            }
        });
        Checks.check("missing_consumer_group_is_not_found", () ->
            receiving("nobody", "0", AmqpErrorCondition.NOT_FOUND, ENTITY));
        Checks.check("unknown_partition_is_refused_to_receiver", () ->
            receiving(Clients.GROUP, "1000", AmqpErrorCondition.ARGUMENT_OUT_OF_RANGE_ERROR, PARTITION));
        Checks.check("unknown_partition_is_refused_to_sender", () ->
            refused(AmqpErrorCondition.ARGUMENT_OUT_OF_RANGE_ERROR, PARTITION, () -> Clients.send("1000", "x")));
        // The client makes this of every status 400.
        Checks.check("unknown_partition_has_no_properties", () -> {
            var error = Checks.refused(IllegalArgumentException.class,
                () -> Clients.PRODUCER.getPartitionProperties("XYZ"));
            Checks.holds(error.getMessage().contains(PARTITION), String.valueOf(error));
        });
    }

    private static void receiving(String group, String partition, AmqpErrorCondition condition, String text) throws Exception {
        try (var client = Clients.builder(Clients.PLAIN, Clients.HUB).consumerGroup(group).buildAsyncConsumerClient()) {
            refused(condition, text,
                () -> client.receiveFromPartition(partition, EventPosition.earliest()).blockFirst(Duration.ofSeconds(20)));
        }
    }

    private static void refused(AmqpErrorCondition condition, String text, Checks.Body body) throws Exception {
        AmqpException error = Checks.refused(AmqpException.class, body);
        Checks.holds(error.getErrorCondition() == condition && error.getMessage().contains(text), String.valueOf(error));
    }
}
