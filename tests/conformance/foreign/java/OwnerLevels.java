import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import com.azure.messaging.eventhubs.models.ReceiveOptions;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import reactor.core.publisher.Flux;

/** Readers that own a partition, and readers that are told how far the partition is. */
final class OwnerLevels {
    private OwnerLevels() {
    }

    static void run() {
        Checks.check("higher_owner_level_takes_over", () -> {
            CompletableFuture<Throwable> lost = new CompletableFuture<>();
            var loser = reading("3", new ReceiveOptions().setOwnerLevel(1L)).subscribe(event -> { }, lost::complete);
            Thread.sleep(1000); // its link stands
            var winner = reading("3", new ReceiveOptions().setOwnerLevel(2L)).subscribe(event -> { }, error -> { });
            try {
                stolen(() -> raise(lost));
            } finally {
                loser.dispose();
                winner.dispose();
            }
        });
        Checks.check("lower_owner_level_is_refused", () -> {
            var holder = reading("3", new ReceiveOptions().setOwnerLevel(5L)).subscribe(event -> { }, error -> { });
            Thread.sleep(1000); // its link stands
            CompletableFuture<Throwable> refused = new CompletableFuture<>();
            var late = reading("3", new ReceiveOptions().setOwnerLevel(4L)).subscribe(event -> { }, refused::complete);
            try {
                stolen(() -> raise(refused));
            } finally {
                late.dispose();
                holder.dispose();
            }
        });
        Checks.check("last_enqueued_event_is_tracked", () -> {
            long last = Clients.lastNumber("1");
            try (var client = Clients.builder(Clients.PLAIN, Clients.HUB).consumerGroup(Clients.GROUP).buildConsumerClient()) {
                var options = new ReceiveOptions().setTrackLastEnqueuedEventProperties(true);
                var start = EventPosition.fromSequenceNumber(last, true);
                for (PartitionEvent event : client.receiveFromPartition("1", 1, start, Clients.WAIT, options)) {
                    Checks.same(event.getLastEnqueuedEventProperties().getSequenceNumber(), last);
                    return;
                }
                throw new AssertionError("no event");
            }
        });
    }

    private static Flux<PartitionEvent> reading(String partition, ReceiveOptions options) {
        return Flux.using(
            () -> Clients.builder(Clients.PLAIN, Clients.HUB).consumerGroup(Clients.GROUP).buildAsyncConsumerClient(),
            client -> client.receiveFromPartition(partition, EventPosition.latest(), options),
            client -> client.close());
    }

    private static void raise(CompletableFuture<Throwable> error) throws Exception {
        throw new Exception(error.get(Duration.ofSeconds(5).toMillis(), TimeUnit.MILLISECONDS));
    }

    private static void stolen(Checks.Body body) throws Exception {
        AmqpException error = Checks.refused(AmqpException.class, body);
        Checks.same(error.getErrorCondition(), AmqpErrorCondition.LINK_STOLEN);
    }
}
