import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.models.EventPosition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Readers that come back: new ones at a number, and one that lives on over a restart of the server. */
final class Resuming {
    private Resuming() {
    }

    static void run() {
        Checks.check("resumes_by_sequence_number", () -> {
            var start = Clients.tail("2");
            List<String> got = new ArrayList<>();
            for (String[] names : new String[][] {{"a", "b", "c"}, {"d", "e"}}) {
                Clients.send("2", names);
                var builder = Clients.builder(Clients.PLAIN, Clients.HUB).consumerGroup(Clients.GROUP);
                try (var client = builder.buildConsumerClient()) {
                    List<EventData> some = Clients.read(client, "2", start, names.length);
                    got.addAll(Clients.bodies(some));
                    start = EventPosition.fromSequenceNumber(some.get(some.size() - 1).getSequenceNumber());
                }
            }
            Checks.same(got, List.of("a", "b", "c", "d", "e"));
        });
        // A stream of this client ends with its link, as its event processor expects: the application reads on.
        Checks.check("reader_and_sender_survive_a_server_restart", () -> {
            long last = Clients.lastNumber("2");
            BlockingQueue<EventData> seen = new LinkedBlockingQueue<>();
            CountDownLatch ended = new CountDownLatch(1);
            var builder = Clients.builder(Clients.PLAIN, Clients.HUB).consumerGroup(Clients.GROUP);
            try (var client = builder.buildAsyncConsumerClient()) {
                client.receiveFromPartition("2", EventPosition.fromSequenceNumber(last))
                    .doFinally(signal -> ended.countDown())
                    .subscribe(event -> seen.add(event.getData()), error -> { });
                Clients.send("2", "before");
                EventData first = seen.poll(20, TimeUnit.SECONDS);
                Checks.same(first.getBodyAsString(), "before");
                Checks.restartServer();
                Checks.holds(ended.await(20, TimeUnit.SECONDS), "the stream did not end");
                Clients.send("2", "after");
                var next = client.receiveFromPartition("2", EventPosition.fromSequenceNumber(first.getSequenceNumber()))
                    .blockFirst(Duration.ofSeconds(20));
                Checks.same(next.getData().getBodyAsString(), "after");
                Checks.same(seen.size(), 0);
            }
        });
    }
}
