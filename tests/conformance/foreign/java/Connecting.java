import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.EventHubProperties;
import com.azure.messaging.eventhubs.PartitionProperties;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

/** Ways in, and what the hub says of itself. */
final class Connecting {
    private Connecting() {
    }

    static void run() {
        Checks.check("connects_plain_and_reads_hub_properties", () -> {
            EventHubProperties hub = Clients.PRODUCER.getEventHubProperties();
            Checks.same(hub.getName(), Clients.HUB);
            Checks.same(hub.getPartitionIds().stream().toList(), List.of("0", "1", "2", "3"));
            Duration age = Duration.between(hub.getCreatedAt(), Instant.now());
            Checks.holds(age.abs().toMinutes() < 10, "created at " + hub.getCreatedAt());
        });
        // The development CA is in the trust store that the command line names.
        Checks.check("connects_over_tls", () -> {
            try (var client = Clients.builder(System.getenv("HUBWEIR_TLS"), Clients.HUB).buildProducerClient()) {
                Checks.same(client.getEventHubProperties().getName(), Clients.HUB);
            }
        });
        // Over WebSocket the client looks for a port in this address only, and takes 443 else.
        Checks.check("connects_over_websocket", () -> {
            var address = "https://" + System.getenv("HUBWEIR_HOST") + ":" + System.getenv("HUBWEIR_PORT");
            var builder = Clients.builder(System.getenv("HUBWEIR_TLS"), Clients.HUB).customEndpointAddress(address);
            try (var client = builder.transportType(AmqpTransportType.AMQP_WEB_SOCKETS).buildProducerClient()) {
                Checks.same(client.getEventHubProperties().getName(), Clients.HUB);
                Clients.send(client, Clients.toPartition("1"), List.of("over WebSocket"));
            }
        });
        Checks.check("shared_access_signature_instead_of_a_key", () -> {
            try (var client = Clients.builder(System.getenv("HUBWEIR_TOKEN"), Clients.HUB).buildProducerClient()) {
                Clients.send(client, Clients.toPartition("1"), List.of("with a signature"));
                Checks.same(client.getEventHubProperties().getName(), Clients.HUB);
            }
        });
        Checks.check("wrong_key_is_unauthorised", () -> {
            try (EventHubProducerClient client =
                     Clients.builder(System.getenv("HUBWEIR_WRONG_KEY"), Clients.HUB).buildProducerClient()) {
                AmqpException error = Checks.refused(AmqpException.class, client::createBatch);
                Checks.same(error.getErrorCondition(), AmqpErrorCondition.UNAUTHORIZED_ACCESS);
            }
        });
        Checks.check("empty_partition_has_its_properties", () -> {
            PartitionProperties properties = Clients.PRODUCER.getPartitionProperties("3");
            Checks.same(properties.isEmpty(), true);
            Checks.same(properties.getLastEnqueuedSequenceNumber(), -1L);
            Checks.same(properties.getLastEnqueuedOffset(), "-1");
        });
    }
}
