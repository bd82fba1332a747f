import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.policy.PortPolicy;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import java.time.Duration;
import java.util.List;

/** Topics, subscriptions and rules managed over HTTPS. */
final class Administration {
    private static final ServiceBusAdministrationClient BY = client();

    private Administration() {
    }

    /** The client takes no port from a connection string; an application sets another by a policy. */
    private static ServiceBusAdministrationClient client() {
        int port = Integer.parseInt(System.getenv("HUBWEIR_PORT"));
        return new ServiceBusAdministrationClientBuilder().connectionString(System.getenv("HUBWEIR_TLS"))
            .addPolicy(new PortPolicy(port, true)).buildClient();
    }

    static void run() {
        Checks.check("namespace_tells_its_tier", () -> {
            Checks.same(BY.getNamespaceProperties().getName(), "hubweir");
            Checks.same(BY.getNamespaceProperties().getMessagingSku().toString(), "Standard");
        });
        Checks.check("topic_is_administered", () -> {
            CreateTopicOptions options = new CreateTopicOptions().setDefaultMessageTimeToLive(Duration.ofHours(1));
            TopicProperties made = BY.createTopic("made", options);
            Checks.same(made.getName() + made.getDefaultMessageTimeToLive(), "madePT1H");
            refused(409, () -> BY.createTopic("made"));
            TopicProperties changed = BY.updateTopic(BY.getTopic("made").setUserMetadata("<mine & yours>"));
            Checks.same(changed.getUserMetadata() + changed.getMaxSizeInMegabytes(), "<mine & yours>1024");
            Checks.same(BY.getTopicRuntimeProperties("made").getSubscriptionCount(), 0);
            BY.deleteTopic("made");
            Checks.same(List.of(BY.getTopicExists("made"), BY.getTopicExists("news")), List.of(false, true));
        });
        Checks.check("subscription_is_administered", () -> {
            BY.createTopic("subscribed");
            SubscriptionProperties made = BY.createSubscription("subscribed", "Mine",
                new CreateSubscriptionOptions().setLockDuration(Duration.ofSeconds(13)).setSessionRequired(true));
            Checks.same(made.getSubscriptionName() + made.getLockDuration() + made.isSessionRequired(), "MinePT13Strue");
            refused(409, () -> BY.createSubscription("subscribed", "mine"));
            SubscriptionProperties found = BY.getSubscription("subscribed", "Mine");
            Checks.same(BY.updateSubscription(found.setMaxDeliveryCount(9)).getMaxDeliveryCount(), 9);
            Checks.same(BY.getSubscriptionRuntimeProperties("subscribed", "Mine").getTotalMessageCount(), 0L);
            Checks.same(BY.listSubscriptions("subscribed").stream().map(SubscriptionProperties::getSubscriptionName).toList(),
                List.of("Mine"));
            BY.deleteSubscription("subscribed", "Mine");
            Checks.same(BY.getSubscriptionExists("subscribed", "Mine"), false);
            BY.deleteTopic("subscribed");
        });
        Checks.check("first_rule_of_a_subscription_is_the_one_asked_for", () -> {
            BY.createTopic("first-ruled");
            BY.createSubscription("first-ruled", "a", "first", new CreateSubscriptionOptions(),
                new CreateRuleOptions(new SqlRuleFilter("n = 1")).setAction(new SqlRuleAction("SET n = 2")));
            List<RuleProperties> found = BY.listRules("first-ruled", "a").stream().toList();
            Checks.same(found.stream().map(RuleProperties::getName).toList(), List.of("first"));
            Checks.same(((SqlRuleFilter) found.get(0).getFilter()).getSqlExpression(), "n = 1");
            Checks.same(((SqlRuleAction) found.get(0).getAction()).getSqlExpression(), "SET n = 2");
            BY.createRule("first-ruled", "second", "a", new CreateRuleOptions(new SqlRuleFilter("n = 3")));
            Checks.same(BY.getRule("first-ruled", "a", "second").getName(), "second");
            BY.deleteRule("first-ruled", "a", "second");
            BY.deleteTopic("first-ruled");
        });
        Checks.check("administration_refusals_have_codes", () -> {
            refused(404, () -> BY.getTopic("nowhere"));
            refused(404, () -> BY.getSubscription("news", "nowhere"));
            refused(404, () -> BY.deleteTopic("nowhere"));
            refused(400, () -> BY.createTopic("bad", new CreateTopicOptions().setDefaultMessageTimeToLive(Duration.ZERO)));
        });
    }

    private static void refused(int status, Checks.Body body) throws Exception {
        Checks.same(Checks.refused(HttpResponseException.class, body).getResponse().getStatusCode(), status);
    }
}
