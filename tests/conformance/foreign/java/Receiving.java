import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.models.EventPosition;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** Ten events with times of their own, and where reading can begin. */
final class Receiving {
    private static final List<EventData> TEN = new ArrayList<>();

    private Receiving() {
    }

    static void run() {
        List<String> sent = IntStream.range(0, 10).mapToObj(index -> "ten " + index).toList();
        Checks.check("receives_from_earliest", () -> {
            for (String body : sent) {
                Clients.send("0", body);
                Thread.sleep(3); // the next event gets a later enqueued time
            }
            TEN.addAll(Clients.read(Clients.CONSUMER, "0", EventPosition.earliest(), 10));
            Checks.same(Clients.bodies(TEN), sent);
            Checks.same(TEN.get(9).getSequenceNumber(), 9L);
        });
        Map<String, Supplier<EventPosition>> after = new LinkedHashMap<>();
        after.put("receives_after_offset", () -> EventPosition.fromOffsetString(TEN.get(4).getOffsetString()));
        after.put("receives_after_sequence_number", () -> EventPosition.fromSequenceNumber(4));
        after.put("receives_at_sequence_number", () -> EventPosition.fromSequenceNumber(5, true));
        after.put("receives_after_time", () -> EventPosition.fromEnqueuedTime(TEN.get(4).getEnqueuedTime()));
        after.forEach((name, start) -> Checks.check(name, () -> {
            List<EventData> got = Clients.read(Clients.CONSUMER, "0", start.get(), 5);
            Checks.same(Clients.bodies(got), sent.subList(5, 10));
        }));
        Checks.check("receives_from_latest", Receiving::fromLatest);
        Checks.check("receives_beyond_the_first_credit", () -> {
            var start = Clients.tail("0");
            List<String> many = IntStream.range(0, 1000).mapToObj(String::valueOf).toList();
            Clients.send("0", many.toArray(new String[0]));
            Checks.same(Clients.bodies(Clients.read(Clients.CONSUMER, "0", start, 1000)), many);
        });
    }

    /** When the link stands is not told to the application: it sends until something arrives. */
    private static void fromLatest() throws Exception {
        AtomicBoolean sending = new AtomicBoolean(true);
        Thread sender = new Thread(() -> {
            for (int index = 0; sending.get(); index++) {
                Clients.send("0", "late " + index);
                try {
                    Thread.sleep(50);
                } catch (InterruptedException stop) {
                    return;
                }
            }
        });
        sender.start();
        EventData first = Clients.read(Clients.CONSUMER, "0", EventPosition.latest(), 1).get(0);
        sending.set(false);
        sender.join();
        Checks.holds(first.getSequenceNumber() >= 10, "an old event came: " + first.getSequenceNumber());
        Checks.holds(first.getBodyAsString().startsWith("late "), first.getBodyAsString());
    }
}
