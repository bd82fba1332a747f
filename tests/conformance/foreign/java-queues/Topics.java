import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Topics, their subscriptions, and rules as they come and go over AMQP. */
final class Topics {
    private Topics() {
    }

    static void run() {
        Checks.check("subscriptions_get_what_their_rules_let_through", Topics::filtered);
        Checks.check("subscriptions_settle_apart", Topics::settled);
        Checks.check("dead_letters_of_a_subscription_say_why", Topics::deadLettered);
        Checks.check("session_of_a_subscription_is_received_in_order", Topics::sessions);
        Checks.check("scheduled_message_of_a_topic_comes_in_time", Topics::scheduled);
        Checks.check("rules_come_and_go_over_amqp", Topics::rules);
    }

    /** A receiver that renews no locks by itself. */
    private static ServiceBusReceiverClient of(String topic, String name, SubQueue part) {
        return Queues.builder(Queues.PLAIN).receiver().topicName(topic).subscriptionName(name).subQueue(part)
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
    }

    private static void send(String topic, ServiceBusMessage... messages) {
        try (ServiceBusSenderClient to = Queues.builder(Queues.PLAIN).sender().topicName(topic).buildClient()) {
            to.sendMessages(List.of(messages));
        }
    }

    private static ServiceBusMessage colored(String body, String color, Object size) {
        ServiceBusMessage made = Queues.message(body);
        made.getApplicationProperties().putAll(Map.of("color", color, "size", size));
        return made;
    }

    private static void filtered() {
        send("news", colored("small", "red", 1), colored("large", "red", 2L), colored("blue", "blue", 2),
            colored("larger", "red", 2.5));
        try (ServiceBusReceiverClient all = of("news", "all", SubQueue.NONE);
            ServiceBusReceiverClient red = of("news", "red", SubQueue.NONE)) {
            Checks.same(Queues.bodies(Queues.receive(all, 4)), List.of("small", "large", "blue", "larger"));
            List<ServiceBusReceivedMessage> got = Queues.receive(red, 2);
            Checks.same(Queues.bodies(got), List.of("large", "larger"));
            Checks.same(List.of(got.get(0).getSequenceNumber(), got.get(1).getSequenceNumber()), List.of(1L, 2L));
            Checks.same(got.get(1).getEnqueuedSequenceNumber(), 4L);
            Checks.same(got.get(1).getApplicationProperties(), Map.of("color", "red", "size", 2.5));
            Queues.isEmpty(red);
        }
    }

    private static void settled() {
        send("settled-news", Queues.message("x"), Queues.message("y"));
        try (ServiceBusReceiverClient left = of("settled-news", "left", SubQueue.NONE);
            ServiceBusReceiverClient right = of("settled-news", "right", SubQueue.NONE)) {
            List<ServiceBusReceivedMessage> got = Queues.receive(left, 2);
            List<ServiceBusReceivedMessage> others = Queues.receive(right, 2);
            Checks.holds(!got.get(0).getLockToken().equals(others.get(0).getLockToken()), "two copies have one lock");
            left.abandon(got.get(0), new AbandonOptions().setPropertiesToModify(Map.of("tried", true)));
            left.defer(got.get(1));
            ServiceBusReceivedMessage again = Queues.receiveOne(left);
            Checks.same(again.getDeliveryCount(), 1L);
            Checks.same(again.getApplicationProperties(), Map.of("tried", true));
            left.complete(again);
            left.complete(left.receiveDeferredMessage(got.get(1).getSequenceNumber()));
            Queues.isGone(left);
            Checks.same(Queues.bodies(Queues.peek(right)), List.of("x", "y"));
            Checks.same(others.get(0).getDeliveryCount(), 0L);
            others.forEach(right::complete);
            Queues.isGone(right);
        }
    }

    private static void deadLettered() {
        send("dead-news", Queues.message("x"));
        try (ServiceBusReceiverClient from = of("dead-news", "a", SubQueue.NONE);
            ServiceBusReceiverClient dead = of("dead-news", "a", SubQueue.DEAD_LETTER_QUEUE);
            ServiceBusReceiverClient other = of("dead-news", "b", SubQueue.NONE)) {
            from.deadLetter(Queues.receiveOne(from), new DeadLetterOptions().setDeadLetterReason("broken")
                .setDeadLetterErrorDescription("no wheels"));
            Queues.isGone(from);
            ServiceBusReceivedMessage got = Queues.receiveOne(dead);
            Checks.same(List.of(got.getBody().toString(), got.getDeadLetterReason(), got.getDeadLetterErrorDescription()),
                List.of("x", "broken", "no wheels"));
            dead.complete(got);
            Queues.isGone(dead);
            Queues.receiveOne(other);
        }
    }

    private static void sessions() {
        send("session-news", Queues.of("a", "a1"), Queues.of("a", "a2"));
        send("session-news", Queues.of("b", "b1"), Queues.of("b", "b2"));
        try (ServiceBusSessionReceiverClient by = Queues.builder(Queues.PLAIN).sessionReceiver().topicName("session-news")
            .subscriptionName("a").maxAutoLockRenewDuration(Duration.ZERO).buildClient()) {
            try (ServiceBusReceiverClient named = by.acceptSession("b")) {
                List<ServiceBusReceivedMessage> got = Queues.receive(named, 2);
                Checks.same(Queues.bodies(got), List.of("b1", "b2"));
                named.setSessionState(BinaryData.fromString("seen b2").toBytes());
                got.forEach(named::complete);
            }
            try (ServiceBusReceiverClient next = by.acceptNextSession()) {
                Checks.same(next.getSessionId(), "a");
                Checks.same(Queues.bodies(Queues.receive(next, 2)), List.of("a1", "a2"));
            }
            try (ServiceBusReceiverClient again = by.acceptSession("b")) {
                Checks.same(new String(again.getSessionState()), "seen b2");
                Queues.isEmpty(again);
            }
        }
    }

    private static void scheduled() {
        OffsetDateTime due = OffsetDateTime.now().withNano(0).plusSeconds(3);
        try (ServiceBusSenderClient to = Queues.builder(Queues.PLAIN).sender().topicName("scheduled-news").buildClient();
            ServiceBusReceiverClient from = of("scheduled-news", "a", SubQueue.NONE)) {
            to.scheduleMessage(Queues.message("x"), due);
            to.cancelScheduledMessage(to.scheduleMessage(Queues.message("cancelled"), due));
            ServiceBusReceivedMessage got = Queues.receiveOne(from);
            Duration late = Duration.between(due, OffsetDateTime.now());
            Checks.holds(!late.isNegative() && late.toMillis() < 1_000, "it came " + late + " behind its time");
            Checks.same(got.getBody().toString(), "x");
            Checks.same(got.getEnqueuedTime().toEpochSecond(), due.toEpochSecond());
            Queues.isEmpty(from);
        }
    }

    private static void rules() throws Exception {
        try (ServiceBusRuleManagerClient manager = Queues.builder(Queues.PLAIN).ruleManager().topicName("ruled-news")
            .subscriptionName("a").buildClient();
            ServiceBusReceiverClient from = of("ruled-news", "a", SubQueue.NONE)) {
            CorrelationRuleFilter correlation = new CorrelationRuleFilter("c").setLabel("s");
            correlation.getProperties().putAll(Map.of("n", 7, "text", "é", "yes", true));
            manager.createRule("acts",
                new CreateRuleOptions(new SqlRuleFilter("color = 'red'")).setAction(new SqlRuleAction("SET marked = 1")));
            manager.createRule("correlates", new CreateRuleOptions(correlation));
            List<RuleProperties> found = manager.listRules().stream().toList();
            Checks.same(found.stream().map(RuleProperties::getName).toList(), List.of("$Default", "acts", "correlates"));
            Checks.holds(found.get(0).getFilter() instanceof TrueRuleFilter, "the first filter is " + found.get(0).getFilter());
            Checks.same(((SqlRuleFilter) found.get(1).getFilter()).getSqlExpression(), "color = 'red'");
            Checks.same(((SqlRuleAction) found.get(1).getAction()).getSqlExpression(), "SET marked = 1");
            CorrelationRuleFilter told = (CorrelationRuleFilter) found.get(2).getFilter();
            Checks.same(told.getCorrelationId() + told.getLabel(), "cs");
            Checks.same(new TreeMap<>(told.getProperties()).toString(), new TreeMap<>(correlation.getProperties()).toString());
            Checks.refused(AmqpException.class, () -> manager.createRule("acts", new CreateRuleOptions(correlation)));
            CreateRuleOptions bad = new CreateRuleOptions(new SqlRuleFilter("color = "));
            Checks.refused(AmqpException.class, () -> manager.createRule("bad", bad));
            Checks.same(manager.listRules().stream().count(), 3L);
            manager.deleteRule("$Default");
            Checks.refused(AmqpException.class, () -> manager.deleteRule("$Default"));
            send("ruled-news", colored("x", "red", 1), colored("nothing asks for this", "blue", 1));
            ServiceBusReceivedMessage got = Queues.receiveOne(from);
            Checks.same(got.getApplicationProperties().get("marked"), 1L);
            Checks.same(got.getApplicationProperties().get("RuleName"), "acts");
            Queues.isEmpty(from);
        }
    }
}
