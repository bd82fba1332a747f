import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventDataBatch;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.CreateBatchOptions;
import com.azure.messaging.eventhubs.models.EventPosition;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import reactor.core.publisher.Mono;

/** The client over many minutes: what tests/conformance/soak/task.py says, in Java. */
final class Soak {
    private static final String HOST = System.getenv("HUBWEIR_HOST");
    private static final String HUB = System.getenv("HUBWEIR_HUB");
    private static final Duration EVERY = Duration.ofSeconds(5);
    /** An operation of the client that takes longer waits without end. */
    private static final Duration STEP = Duration.ofSeconds(90);
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(body -> {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        return thread;
    });
    private static final Instant BEGAN = Instant.now();
    private static Instant ends;

    private Soak() {
    }

    /** Makes tokens when the client wants one, and counts. */
    private static final class Credential implements TokenCredential {
        final AtomicInteger made = new AtomicInteger();

        @Override
        public Mono<AccessToken> getToken(com.azure.core.credential.TokenRequestContext request) {
            return Mono.fromCallable(this::make);
        }

        private AccessToken make() throws Exception {
            made.incrementAndGet();
            long expires = Instant.now().getEpochSecond() + Long.parseLong(System.getenv("HUBWEIR_TOKEN_S"));
            String resource = encoded("sb://" + HOST + "/" + HUB);
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(System.getenv("HUBWEIR_KEY").getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
            byte[] signed = mac.doFinal((resource + "\n" + expires).getBytes(StandardCharsets.UTF_8));
            String token = "SharedAccessSignature sr=" + resource + "&sig="
                + encoded(Base64.getEncoder().encodeToString(signed)) + "&se=" + expires + "&skn="
                + System.getenv("HUBWEIR_RULE");
            return new AccessToken(token, OffsetDateTime.ofInstant(Instant.ofEpochSecond(expires), ZoneOffset.UTC));
        }

        private static String encoded(String text) {
            return URLEncoder.encode(text, StandardCharsets.UTF_8);
        }
    }

    /** One partition from its beginning: bodies, and the errors that were heard. */
    private static final class Reading {
        final List<String> bodies = new CopyOnWriteArrayList<>();
        final List<String> errors = new CopyOnWriteArrayList<>();

        Reading(EventHubConsumerAsyncClient client, String partition) {
            client.receiveFromPartition(partition, EventPosition.earliest()).subscribe(
                event -> bodies.add(event.getData().getBodyAsString()),
                error -> errors.add(String.valueOf(error)),
                () -> errors.add("the stream of events ended"));
        }

        void expect(int count) throws Exception {
            Instant until = Instant.now().plus(STEP.dividedBy(2));
            while (bodies.size() < count && errors.isEmpty() && Instant.now().isBefore(until)) {
                Thread.sleep(100);
            }
            Checks.holds(errors.isEmpty(), "the reader heard " + errors);
            Checks.same(bodies.size(), count);
        }
    }

    static void run() throws Exception {
        ends = BEGAN.plusSeconds(Long.parseLong(System.getenv("HUBWEIR_SOAK_S")));
        List<Future<?>> all = new ArrayList<>();
        all.add(THREADS.submit(() -> check("key_busy", () -> busy("key", "0"))));
        all.add(THREADS.submit(() -> check("key_idle", () -> idle("key", "1"))));
        all.add(THREADS.submit(() -> check("token_busy", () -> busy("token", "2"))));
        all.add(THREADS.submit(() -> check("token_idle", () -> idle("token", "3"))));
        all.add(THREADS.submit(() -> check("tokens_renewed", Soak::renewed)));
        for (Future<?> each : all) {
            each.get();
        }
    }

    private static void check(String name, Callable<Void> body) {
        String problem = "";
        try {
            body.call();
        } catch (Throwable thrown) {
            double minutes = Duration.between(BEGAN, Instant.now()).toMillis() / 60_000.0;
            problem = String.format("after %.1f min: %s", minutes, thrown);
        }
        Checks.say(name, problem);
    }

    private static EventHubClientBuilder builder(String way, Credential credential) {
        EventHubClientBuilder builder = new EventHubClientBuilder().consumerGroup(Clients.GROUP);
        return way.equals("key") ? builder.connectionString(Clients.PLAIN, HUB) : builder.credential(HOST, HUB, credential);
    }

    private static void step(String name, Checks.Body body) throws Exception {
        Future<?> done = THREADS.submit(() -> {
            body.run();
            return null;
        });
        try {
            done.get(STEP.toSeconds(), TimeUnit.SECONDS);
        } catch (Exception problem) {
            throw new AssertionError(name + ": " + (problem.getCause() == null ? problem : problem.getCause()), problem);
        }
    }

    private static void send(EventHubProducerClient to, String partition, String body) throws Exception {
        step("send", () -> {
            EventDataBatch batch = to.createBatch(new CreateBatchOptions().setPartitionId(partition));
            batch.tryAdd(new EventData(body));
            to.send(batch);
        });
    }

    private static Void busy(String way, String partition) throws Exception {
        Credential credential = new Credential();
        EventHubProducerClient to = builder(way, credential).buildProducerClient();
        Reading reading = new Reading(builder(way, credential).buildAsyncConsumerClient(), partition);
        for (int sent = 1; Instant.now().isBefore(ends); sent++) {
            send(to, partition, "event " + sent);
            reading.expect(sent);
            if (sent % 12 == 0) {
                step("read the partition's properties", () -> to.getPartitionProperties(partition));
            }
            Thread.sleep(EVERY.toMillis());
        }
        return null;
    }

    private static Void idle(String way, String partition) throws Exception {
        Credential credential = new Credential();
        EventHubProducerClient to = builder(way, credential).buildProducerClient();
        Reading reading = new Reading(builder(way, credential).buildAsyncConsumerClient(), partition);
        for (int count = 1; count <= 2; count++) {
            step("read the hub's properties, " + count, to::getEventHubProperties);
            send(to, partition, "event " + count);
            reading.expect(count);
            rest();
        }
        return null;
    }

    /** Nobody else uses this credential: it is that of one reader's link and connection. */
    private static Void renewed() throws Exception {
        Credential credential = new Credential();
        Reading reading = new Reading(builder("token", credential).buildAsyncConsumerClient(), "3");
        reading.expect(1);
        rest();
        Checks.holds(credential.made.get() >= 3, credential.made + " tokens were made");
        reading.expect(2);
        return null;
    }

    private static void rest() throws Exception {
        Thread.sleep(Math.max(0, Duration.between(Instant.now(), ends).toMillis()));
    }
}
