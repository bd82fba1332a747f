package main

import (
	"context"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// subscribed runs body with a receiver of a subscription, and closes it.
func subscribed(
	ctx context.Context, topic, name string, options *azservicebus.ReceiverOptions, body func(*azservicebus.Receiver),
) {
	receiver := must(client.NewReceiverForSubscription(topic, name, options))
	defer receiver.Close(ctx)
	body(receiver)
}

func colored(body, color string, size any) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body), ApplicationProperties: map[string]any{"color": color, "size": size}}
}

func checkTopics() {
	check("subscriptions_get_what_their_rules_let_through", func(ctx context.Context) {
		send(ctx, "news", colored("small", "red", int64(1)), colored("large", "red", int64(2)))
		send(ctx, "news", colored("blue", "blue", int64(2)), colored("larger", "red", 2.5))
		subscribed(ctx, "news", "all", nil, func(receiver *azservicebus.Receiver) {
			got := receive(ctx, receiver, 4)
			same(bodies(got), []string{"small", "large", "blue", "larger"})
			same([]any{*got[0].SequenceNumber, *got[3].SequenceNumber}, []any{1, 4})
		})
		subscribed(ctx, "news", "red", nil, func(receiver *azservicebus.Receiver) {
			got := receive(ctx, receiver, 2)
			same(bodies(got), []string{"large", "larger"})
			same([]any{*got[0].SequenceNumber, *got[1].SequenceNumber}, []any{1, 2})
			same([]any{*got[0].EnqueuedSequenceNumber, *got[1].EnqueuedSequenceNumber}, []any{2, 4})
			same(got[1].ApplicationProperties, map[string]any{"color": "red", "size": 2.5})
			isEmpty(ctx, receiver)
		})
	})
	check("subscriptions_settle_apart", func(ctx context.Context) {
		send(ctx, "settled-news", message("x"), message("y"))
		subscribed(ctx, "settled-news", "left", nil, func(left *azservicebus.Receiver) {
			subscribed(ctx, "settled-news", "right", nil, func(right *azservicebus.Receiver) {
				got, others := receive(ctx, left, 2), receive(ctx, right, 2)
				holds(got[0].LockToken != others[0].LockToken, "two copies have one lock")
				do(left.AbandonMessage(ctx, got[0], &azservicebus.AbandonMessageOptions{
					PropertiesToModify: map[string]any{"tried": true},
				}))
				do(left.DeferMessage(ctx, got[1], nil))
				again := receiveOne(ctx, left)
				same([]any{string(again.Body), again.DeliveryCount, again.ApplicationProperties},
					[]any{"x", 2, map[string]any{"tried": true}})
				do(left.CompleteMessage(ctx, again, nil))
				deferred := must(left.ReceiveDeferredMessages(ctx, []int64{*got[1].SequenceNumber}, nil))
				do(left.RenewMessageLock(ctx, deferred[0], nil))
				do(left.CompleteMessage(ctx, deferred[0], nil))
				isGone(ctx, left)
				same(bodies(peek(ctx, right)), []string{"x", "y"})
				for _, each := range others {
					same(each.DeliveryCount, 1)
					do(right.CompleteMessage(ctx, each, nil))
				}
				isGone(ctx, right)
			})
		})
	})
	check("dead_letters_of_a_subscription_say_why", func(ctx context.Context) {
		send(ctx, "dead-news", message("x"))
		subscribed(ctx, "dead-news", "a", nil, func(receiver *azservicebus.Receiver) {
			do(receiver.DeadLetterMessage(ctx, receiveOne(ctx, receiver), &azservicebus.DeadLetterOptions{
				Reason: ptr("broken"), ErrorDescription: ptr("no wheels"),
			}))
			isGone(ctx, receiver)
		})
		subscribed(ctx, "dead-news", "a", deadLetters, func(receiver *azservicebus.Receiver) {
			got := receiveOne(ctx, receiver)
			same([]any{string(got.Body), *got.DeadLetterReason, *got.DeadLetterErrorDescription},
				[]any{"x", "broken", "no wheels"})
			do(receiver.CompleteMessage(ctx, got, nil))
			isGone(ctx, receiver)
		})
		subscribed(ctx, "dead-news", "b", deadLetters, func(receiver *azservicebus.Receiver) { isEmpty(ctx, receiver) })
		subscribed(ctx, "dead-news", "b", nil, func(receiver *azservicebus.Receiver) { receiveOne(ctx, receiver) })
	})
	check("session_of_a_subscription_is_received_in_order", func(ctx context.Context) {
		send(ctx, "session-news", of("a", "a1"), of("b", "b1"), of("a", "a2"), of("b", "b2"))
		named := must(client.AcceptSessionForSubscription(ctx, "session-news", "a", "b", nil))
		got := receive(ctx, named, 2)
		same(bodies(got), []string{"b1", "b2"})
		do(named.SetSessionState(ctx, []byte("seen b2"), nil))
		for _, each := range got {
			do(named.CompleteMessage(ctx, each, nil))
		}
		do(named.Close(ctx))
		next := must(client.AcceptNextSessionForSubscription(ctx, "session-news", "a", nil))
		defer next.Close(ctx)
		same(next.SessionID(), "a")
		same(bodies(receive(ctx, next, 2)), []string{"a1", "a2"})
		again := must(client.AcceptSessionForSubscription(ctx, "session-news", "a", "b", nil))
		defer again.Close(ctx)
		same(string(must(again.GetSessionState(ctx, nil))), "seen b2")
		isEmpty(ctx, again)
	})
	check("scheduled_message_of_a_topic_comes_in_time", func(ctx context.Context) {
		sender := must(client.NewSender("scheduled-news", nil))
		defer sender.Close(ctx)
		due := time.Now().Truncate(time.Second).Add(3 * time.Second)
		numbers := must(sender.ScheduleMessages(ctx, []*azservicebus.Message{message("x"), message("cancelled")}, due, nil))
		do(sender.CancelScheduledMessages(ctx, numbers[1:], nil))
		subscribed(ctx, "scheduled-news", "a", nil, func(receiver *azservicebus.Receiver) {
			got := receiveOne(ctx, receiver)
			late := time.Since(due)
			holds(late >= 0 && late < time.Second, "it came "+late.String()+" behind its time")
			same([]any{string(got.Body), got.EnqueuedTime.Truncate(time.Second).Unix()}, []any{"x", due.Unix()})
			isEmpty(ctx, receiver)
		})
	})
	check("topic_cannot_be_received_from", func(ctx context.Context) {
		receiving(ctx, "news", nil, func(receiver *azservicebus.Receiver) {
			_, err := receiver.ReceiveMessages(ctx, 1, nil)
			holds(strings.Contains(errorText(err), "amqp:not-allowed"), "receiver: "+errorText(err))
		})
		err := trySend(ctx, client, "news/Subscriptions/all", message("x"))
		holds(strings.Contains(errorText(err), "amqp:not-allowed"), "sender: "+errorText(err))
		subscribed(ctx, "news", "nowhere", nil, func(receiver *azservicebus.Receiver) {
			_, err := receiver.ReceiveMessages(ctx, 1, nil)
			refused(azservicebus.CodeNotFound, err)
		})
	})
}
