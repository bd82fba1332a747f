import com.azure.core.util.BinaryData;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.EventPosition;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/** The partition of a key: the same for every client, batch or not. */
final class Keys {
    private Keys() {
    }

    static void run() throws Exception {
        Checks.check("single_and_batch_of_a_key_share_a_partition", () -> {
            try (var client = Clients.builder(Clients.PLAIN, "keys-8").buildProducerClient()) {
                Clients.send(client, Clients.byKey("shared"), List.of("single"));
                Clients.send(client, Clients.byKey("shared"), List.of("first", "second"));
                List<String> ids = everything(client, "keys-8").get("shared");
                Checks.same(List.of(ids.size(), new HashSet<>(ids).size()), List.of(3, 1));
            }
        });
        Map<String, Map<String, Integer>> vectors = vectors();
        for (String count : List.of("2", "4", "8", "32")) {
            String hub = "keys-" + count;
            Checks.check("keys_agree_on_" + count + "_partitions", () -> {
                try (var client = Clients.builder(Clients.PLAIN, hub).buildProducerClient()) {
                    for (String key : vectors.keySet()) {
                        Clients.send(client, Clients.byKey(key), List.of(key));
                    }
                    Map<String, List<String>> found = everything(client, hub);
                    for (var vector : vectors.entrySet()) {
                        String wanted = String.valueOf(vector.getValue().get(count));
                        Checks.same(vector.getKey() + found.get(vector.getKey()), vector.getKey() + List.of(wanted));
                    }
                }
            });
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Map<String, Integer>> vectors() throws Exception {
        String text = Files.readString(Path.of(System.getenv("HUBWEIR_KEY_VECTORS")));
        return (Map<String, Map<String, Integer>>) BinaryData.fromString(text).toObject(Map.class);
    }

    /** Reads a whole hub: for each partition key, the partitions of its events. */
    private static Map<String, List<String>> everything(EventHubProducerClient client, String hub) {
        Map<String, List<String>> found = new HashMap<>();
        var builder = Clients.builder(Clients.PLAIN, hub).consumerGroup(Clients.GROUP);
        try (var consumer = builder.buildConsumerClient()) {
            for (String id : client.getPartitionIds()) {
                int count = (int) client.getPartitionProperties(id).getLastEnqueuedSequenceNumber() + 1;
                for (EventData event : Clients.read(consumer, id, EventPosition.earliest(), count)) {
                    if (event.getPartitionKey() != null) {
                        found.computeIfAbsent(event.getPartitionKey(), key -> new ArrayList<>()).add(id);
                    }
                }
            }
        }
        return found;
    }
}
