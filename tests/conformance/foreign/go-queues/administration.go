package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

const many = 250

// administrator returns a client of management over HTTPS, at the port of everything else.
func administrator(connectionString string) *admin.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(os.Getenv("HUBWEIR_CA_FILE"))))
	options := &admin.ClientOptions{}
	options.Transport = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	options.Retry.MaxRetries = -1
	return must(admin.NewClientFromConnectionString(connectionString, options))
}

// refusedWith panics unless err is an answer with this status.
func refusedWith(status int, err error) {
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) || refusal.StatusCode != status {
		panic(fmt.Sprintf("want status %d, got: %v", status, err))
	}
}

// withTopic runs body while there is a topic of this name.
func withTopic(ctx context.Context, by *admin.Client, name string, body func()) {
	must(by.CreateTopic(ctx, name, nil))
	body()
	must(by.DeleteTopic(ctx, name, nil))
}

func isRecent(times ...time.Time) {
	for _, each := range times {
		holds(time.Since(each).Abs() < time.Minute, "the time is "+each.String())
	}
}

func checkAdministration() {
	by := administrator(os.Getenv("HUBWEIR_TLS"))
	check("namespace_tells_its_tier", func(ctx context.Context) {
		found := must(by.GetNamespaceProperties(ctx, nil))
		same([]any{found.Name, found.SKU, found.MessagingUnits == nil}, []any{"hubweir", "Standard", true})
	})
	check("topic_is_administered", func(ctx context.Context) {
		properties := admin.TopicProperties{DefaultMessageTimeToLive: ptr("PT1H"), RequiresDuplicateDetection: ptr(true)}
		made := must(by.CreateTopic(ctx, "made", &admin.CreateTopicOptions{Properties: &properties}))
		same([]any{made.TopicName, *made.DefaultMessageTimeToLive, *made.RequiresDuplicateDetection}, []any{"made", "PT1H", true})
		_, err := by.CreateTopic(ctx, "made", nil)
		refusedWith(http.StatusConflict, err)
		found := must(by.GetTopic(ctx, "made", nil))
		same([]any{*found.MaxSizeInMegabytes, *found.Status, *found.EnablePartitioning}, []any{1024, "Active", false})
		found.UserMetadata = ptr("<mine & yours>")
		changed := must(by.UpdateTopic(ctx, "made", found.TopicProperties, nil))
		same([]any{*changed.UserMetadata, *changed.DefaultMessageTimeToLive}, []any{"<mine & yours>", "PT1H"})
		runtime := must(by.GetTopicRuntimeProperties(ctx, "made", nil))
		same([]any{runtime.SubscriptionCount, runtime.ScheduledMessageCount, runtime.SizeInBytes}, []any{0, 0, 0})
		isRecent(runtime.CreatedAt, runtime.UpdatedAt)
		must(by.DeleteTopic(ctx, "made", nil))
		holds(must(by.GetTopic(ctx, "made", nil)) == nil, "the topic is still there")
	})
	check("subscription_is_administered", func(ctx context.Context) { checkSubscriptions(ctx, by) })
	check("counts_of_a_subscription_are_told", func(ctx context.Context) {
		withTopic(ctx, by, "counted", func() {
			must(by.CreateSubscription(ctx, "counted", "a", nil))
			send(ctx, "counted", message("active"), message("dead"))
			subscribed(ctx, "counted", "a", nil, func(receiver *azservicebus.Receiver) {
				do(receiver.DeadLetterMessage(ctx, receive(ctx, receiver, 2)[1], nil))
			})
			found := must(by.GetSubscriptionRuntimeProperties(ctx, "counted", "a", nil))
			same([]any{found.ActiveMessageCount, found.DeadLetterMessageCount, found.TotalMessageCount}, []any{1, 1, 2})
			isRecent(found.CreatedAt)
			of := must(by.GetTopicRuntimeProperties(ctx, "counted", nil))
			same([]any{of.SubscriptionCount, of.SizeInBytes > 0}, []any{1, true})
		})
	})
	check("rule_keeps_filter_action_and_parameters", func(ctx context.Context) {
		withTopic(ctx, by, "ruled", func() { checkRules(ctx, by) })
	})
	check("first_rule_of_a_subscription_is_the_one_asked_for", func(ctx context.Context) {
		withTopic(ctx, by, "first-ruled", func() {
			first := &admin.RuleProperties{
				Name: "first", Filter: &admin.SQLFilter{Expression: "n = 1"}, Action: &admin.SQLAction{Expression: "SET n = 2"},
			}
			must(by.CreateSubscription(ctx, "first-ruled", "a", &admin.CreateSubscriptionOptions{
				Properties: &admin.SubscriptionProperties{DefaultRule: first},
			}))
			rules := listedRules(ctx, by, "first-ruled")
			same([]any{len(rules), rules[0].Name, *rules[0].Filter.(*admin.SQLFilter), *rules[0].Action.(*admin.SQLAction)},
				[]any{1, "first", *first.Filter.(*admin.SQLFilter), *first.Action.(*admin.SQLAction)})
		})
	})
	check("lists_come_in_pages_in_order", func(ctx context.Context) { checkLists(ctx, by) })
	check("administration_refusals_have_codes", func(ctx context.Context) {
		// This client takes an entity that is missing for no error of a read.
		same([]any{must(by.GetTopic(ctx, "nowhere", nil)) == nil, must(by.GetSubscription(ctx, "news", "nowhere", nil)) == nil},
			[]any{true, true})
		_, err := by.DeleteTopic(ctx, "nowhere", nil)
		refusedWith(http.StatusNotFound, err)
		_, err = by.CreateSubscription(ctx, "nowhere", "a", nil)
		refusedWith(http.StatusNotFound, err)
		bad := &admin.TopicProperties{DefaultMessageTimeToLive: ptr("PT0S")}
		_, err = by.CreateTopic(ctx, "bad", &admin.CreateTopicOptions{Properties: bad})
		refusedWith(http.StatusBadRequest, err)
		stranger := administrator(strings.Replace(os.Getenv("HUBWEIR_WRONG_KEY"), ";UseDevelopmentEmulator=true", "", 1))
		_, err = stranger.GetTopic(ctx, "news", nil)
		refusedWith(http.StatusUnauthorized, err)
	})
}

func checkSubscriptions(ctx context.Context, by *admin.Client) {
	withTopic(ctx, by, "subscribed", func() {
		properties := admin.SubscriptionProperties{LockDuration: ptr("PT13S"), MaxDeliveryCount: ptr(int32(7)), RequiresSession: ptr(true)}
		options := &admin.CreateSubscriptionOptions{Properties: &properties}
		made := must(by.CreateSubscription(ctx, "subscribed", "Mine", options))
		same([]any{made.TopicName, made.SubscriptionName, *made.LockDuration, *made.MaxDeliveryCount, *made.RequiresSession},
			[]any{"subscribed", "Mine", "PT13S", 7, true})
		_, err := by.CreateSubscription(ctx, "subscribed", "mine", nil)
		refusedWith(http.StatusConflict, err)
		found := must(by.GetSubscription(ctx, "subscribed", "Mine", nil))
		same([]any{*found.Status, *found.EnableDeadLetteringOnFilterEvaluationExceptions}, []any{"Active", true})
		// This client leaves the status of a subscription out when it writes one.
		found.MaxDeliveryCount = ptr(int32(9))
		changed := must(by.UpdateSubscription(ctx, "subscribed", "Mine", found.SubscriptionProperties, nil))
		same([]any{*changed.MaxDeliveryCount, *changed.Status, *changed.LockDuration}, []any{9, "Active", "PT13S"})
		must(by.DeleteSubscription(ctx, "subscribed", "Mine", nil))
		holds(must(by.GetSubscription(ctx, "subscribed", "Mine", nil)) == nil, "the subscription is still there")
	})
}

func checkRules(ctx context.Context, by *admin.Client) {
	must(by.CreateSubscription(ctx, "ruled", "a", nil))
	values := map[string]any{
		"text": "<é & co>", "yes": true, "whole": int64(7), "real": 0.5, "when": time.Unix(1_577_934_245, 0).UTC(),
	}
	parameters := map[string]any{}
	for name, value := range values {
		parameters["@"+name] = value
	}
	filter := &admin.SQLFilter{Expression: "text = @text AND n = @whole", Parameters: parameters}
	action := &admin.SQLAction{Expression: "SET n = @whole", Parameters: map[string]any{"@whole": int64(7)}}
	sql := &admin.CreateRuleOptions{Name: ptr("sql"), Filter: filter, Action: action}
	made := must(by.CreateRule(ctx, "ruled", "a", sql))
	same([]any{made.Name, *made.Filter.(*admin.SQLFilter), *made.Action.(*admin.SQLAction)}, []any{"sql", *filter, *action})
	_, err := by.CreateRule(ctx, "ruled", "a", sql)
	refusedWith(http.StatusConflict, err)
	must(by.CreateRule(ctx, "ruled", "a", &admin.CreateRuleOptions{
		Name: ptr("correlation"), Filter: &admin.CorrelationFilter{Subject: ptr("s"), ApplicationProperties: values},
	}))
	rules := listedRules(ctx, by, "ruled")
	same([]any{rules[0].Name, rules[1].Name, rules[2].Name}, []any{"$Default", "sql", "correlation"})
	_, isTrue := rules[0].Filter.(*admin.TrueFilter)
	holds(isTrue, fmt.Sprintf("the first filter is a %T", rules[0].Filter))
	correlation := rules[2].Filter.(*admin.CorrelationFilter)
	same([]any{*correlation.Subject, correlation.ApplicationProperties}, []any{"s", values})
	changed := must(by.GetRule(ctx, "ruled", "a", "sql", nil)).RuleProperties
	changed.Filter = &admin.FalseFilter{}
	_, isFalse := must(by.UpdateRule(ctx, "ruled", "a", changed)).Filter.(*admin.FalseFilter)
	holds(isFalse, "the rule has another filter")
	must(by.DeleteRule(ctx, "ruled", "a", "sql", nil))
	holds(must(by.GetRule(ctx, "ruled", "a", "sql", nil)) == nil, "the rule is still there")
	_, err = by.CreateRule(ctx, "ruled", "a", &admin.CreateRuleOptions{
		Name: ptr("bad"), Filter: &admin.SQLFilter{Expression: "n = "},
	})
	refusedWith(http.StatusBadRequest, err)
}

func listedRules(ctx context.Context, by *admin.Client, topic string) []admin.RuleProperties {
	var found []admin.RuleProperties
	for pager := by.NewListRulesPager(topic, "a", nil); pager.More(); {
		found = append(found, must(pager.NextPage(ctx)).Rules...)
	}
	return found
}

func checkLists(ctx context.Context, by *admin.Client) {
	const topic = "txt/.-_123"
	names := func() (found []string) {
		for pager := by.NewListSubscriptionsPager(topic, nil); pager.More(); {
			for _, each := range must(pager.NextPage(ctx)).Subscriptions {
				found = append(found, each.SubscriptionName)
			}
		}
		return found
	}
	withTopic(ctx, by, topic, func() {
		same(len(names()), 0)
		wanted := make([]string, many)
		for number := range wanted {
			wanted[number] = fmt.Sprintf("s-%03d", number)
		}
		must(by.CreateSubscription(ctx, topic, wanted[many-1], nil))
		same(names(), wanted[many-1:])
		for number := many - 2; number >= 0; number-- {
			must(by.CreateSubscription(ctx, topic, wanted[number], nil))
		}
		same(strings.Join(names(), " "), strings.Join(wanted, " "))
	})
}
