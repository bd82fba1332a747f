/** Everything that an application does with azure-messaging-servicebus, against the namespace of the environment. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        Messages.run();
        Settling.run();
        Sessions.run();
        Topics.run();
        Administration.run();
        Transactions.run();
        System.exit(0);
    }
}
