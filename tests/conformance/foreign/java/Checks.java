import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

/** Runs checks one after the other and prints one JSON line for each; those that HUBWEIR_CHECKS names, else all. */
final class Checks {
    private static final int LIMIT_S = 45;
    private static final String WANTED = System.getenv().getOrDefault("HUBWEIR_CHECKS", "");
    private static final Set<String> NAMES = Set.of(WANTED.split(","));
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(body -> {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        return thread;
    });

    interface Body {
        void run() throws Exception;
    }

    private Checks() {
    }

    /** A check that throws, or takes longer than the limit, is not ok. */
    static void check(String name, Body body) {
        if (!WANTED.isEmpty() && !NAMES.contains(name)) {
            return;
        }
        CompletableFuture<String> result = new CompletableFuture<>();
        THREADS.execute(() -> {
            try {
                body.run();
                result.complete(null);
            } catch (Throwable problem) {
                result.complete(String.valueOf(problem));
            }
        });
        String problem;
        try {
            problem = result.get(LIMIT_S, TimeUnit.SECONDS);
        } catch (Exception late) {
            problem = "no result within " + LIMIT_S + " s";
        }
        say(name, problem == null ? "" : problem);
    }

    /** Print the verdict on a check; it is ok without a problem. */
    static void say(String name, String problem) {
        System.out.printf("{\"check\": %s, \"ok\": %s, \"detail\": %s}%n", quoted(name), problem.isEmpty(), quoted(problem));
    }

    static void same(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError(shortened("got " + got) + ", " + shortened("want " + wanted));
        }
    }

    static void holds(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    /** The body must throw this class; returns what it threw. Reactor wraps what its own threads threw. */
    static <T extends Throwable> T refused(Class<T> wanted, Body body) throws Exception {
        try {
            body.run();
        } catch (Throwable thrown) {
            for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
                if (wanted.isInstance(cause)) {
                    return wanted.cast(cause);
                }
            }
            throw new AssertionError("refused with " + thrown, thrown);
        }
        throw new AssertionError("it was not refused");
    }

    /** Ask for a restart of the server; returns when it runs again. */
    static void restartServer() throws Exception {
        System.out.println("{\"ask\": \"restart\"}");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
    }

    private static String shortened(String text) {
        return text.length() > 300 ? text.substring(0, 300) + "…" : text;
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            out.append(c < ' ' || c == '"' || c == '\\' || c > '~' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return out.append('"').toString();
    }
}
