/** Everything that an application does with azure-messaging-eventhubs, against the namespace of the environment. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0 && arguments[0].equals("soak")) {
            Soak.run();
            System.exit(0);
        }
        Connecting.run();
        Sending.run();
        Keys.run();
        Receiving.run();
        Refusals.run();
        OwnerLevels.run();
        Resuming.run();
        System.exit(0);
    }
}
