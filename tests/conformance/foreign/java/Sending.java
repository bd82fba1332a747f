import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.models.CreateBatchOptions;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.SendOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.stream.IntStream;

/** Single events and batches: what arrives, and what is too large. */
final class Sending {
    private static final int MEBIBYTE = 1 << 20;

    private Sending() {
    }

    static void run() {
        Checks.check("partition_properties_count_what_was_sent", () -> {
            long before = Clients.lastNumber("1");
            Clients.send("1", "1", "2", "3");
            var after = Clients.PRODUCER.getPartitionProperties("1");
            Checks.same(after.getLastEnqueuedSequenceNumber(), before + 3);
            Checks.same(after.isEmpty(), false);
        });
        Checks.check("single_event_keeps_body_and_properties", Sending::singleEvent);
        Checks.check("batch_stays_together_and_in_order", () -> {
            long start = Clients.lastNumber("1");
            List<String> sent = IntStream.range(0, 250).mapToObj(index -> "event " + index).toList();
            Clients.send("1", sent.toArray(new String[0]));
            var got = Clients.read(Clients.CONSUMER, "1",
                EventPosition.fromSequenceNumber(start), sent.size());
            Checks.same(Clients.bodies(got), sent);
            Checks.same(got.get(249).getSequenceNumber(), start + 250);
        });
        Checks.check("sends_to_the_partition_it_names", () -> {
            long one = Clients.lastNumber("1");
            long two = Clients.lastNumber("2");
            Clients.send("2", "here");
            Checks.same(List.of(Clients.lastNumber("1"), Clients.lastNumber("2")), List.of(one, two + 1));
        });
        Checks.check("batch_limit_is_a_mebibyte", () -> {
            var batch = Clients.PRODUCER.createBatch(Clients.toPartition("2"));
            Checks.same(batch.getMaxSizeInBytes(), MEBIBYTE);
            // The client keeps a sixty-fourth for itself.
            Checks.same(batch.tryAdd(new EventData(new byte[MEBIBYTE - 32 * 1024])), true);
            Clients.PRODUCER.send(batch);
        });
        // Whole lists have the client's own guard as well; it knows the limit from the link.
        Checks.check("oversize_is_refused", () -> {
            List<EventData> large = List.of(new EventData(new byte[MEBIBYTE]));
            SendOptions options = new SendOptions().setPartitionId("2");
            AmqpException error = Checks.refused(AmqpException.class, () -> Clients.PRODUCER.send(large, options));
            Checks.same(error.getErrorCondition(), AmqpErrorCondition.LINK_PAYLOAD_SIZE_EXCEEDED);
        });
        Checks.check("link_is_usable_after_oversize", () -> roundTrip("small again"));
        Checks.check("quarter_mebibyte_event_arrives", () -> roundTrip("q".repeat(250 * 1024)));
        Checks.check("without_key_every_partition_is_used", () -> {
            try (var client = Clients.builder(Clients.PLAIN, "keys-4").buildProducerClient()) {
                for (int index = 0; index < 16; index++) {
                    Clients.send(client, new CreateBatchOptions(), List.of("spread " + index));
                }
                for (String id : client.getPartitionIds()) {
                    Checks.holds(!client.getPartitionProperties(id).isEmpty(), "partition " + id + " is empty");
                }
            }
        });
    }

    private static void roundTrip(String body) {
        var start = Clients.tail("2");
        Clients.send("2", body);
        Checks.same(Clients.bodies(Clients.read(Clients.CONSUMER, "2", start, 1)), List.of(body));
    }

    private static void singleEvent() {
        var start = Clients.tail("1");
        byte[] body = {0, 1, (byte) 254, (byte) 255};
        EventData sent = new EventData(body).setMessageId("message 1").setCorrelationId("correlation 1")
            .setContentType("application/octet-stream");
        Date when = new Date(1_700_000_000_000L);
        sent.getProperties().put("text", "ünïcode");
        sent.getProperties().put("number", 42L);
        sent.getProperties().put("flag", true);
        sent.getProperties().put("when", when);
        Clients.PRODUCER.send(List.of(sent), new SendOptions().setPartitionId("1"));
        EventData got = Clients.read(Clients.CONSUMER, "1", start, 1).get(0);
        Checks.holds(Arrays.equals(got.getBody(), body), "the body differs");
        Checks.same(got.getProperties(), sent.getProperties());
        Checks.same(got.getMessageId(), "message 1");
        Checks.same(got.getCorrelationId(), "correlation 1");
        Checks.same(got.getContentType(), "application/octet-stream");
        Duration age = Duration.between(got.getEnqueuedTime(), Instant.now());
        Checks.holds(age.abs().toSeconds() < 60, "enqueued at " + got.getEnqueuedTime());
    }
}
