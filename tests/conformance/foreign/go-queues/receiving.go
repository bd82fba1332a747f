package main

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var deadLetters = &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}

func checkReceiving() {
	check("received_and_deleted_messages_are_gone", func(ctx context.Context) {
		send(ctx, "deleting", message("a"), message("b"))
		deleting := &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
		receiving(ctx, "deleting", deleting, func(receiver *azservicebus.Receiver) {
			same(bodies(receive(ctx, receiver, 2)), []string{"a", "b"})
			isGone(ctx, receiver)
		})
	})
	check("empty_queue_returns_in_time", func(ctx context.Context) {
		receiving(ctx, "empty", nil, func(receiver *azservicebus.Receiver) {
			isEmpty(ctx, receiver)
			send(ctx, "empty", message("later"))
			same(string(receiveOne(ctx, receiver).Body), "later")
		})
	})
	check("completed_message_is_gone", func(ctx context.Context) {
		send(ctx, "completing", message("x"))
		receiving(ctx, "completing", nil, func(receiver *azservicebus.Receiver) {
			do(receiver.CompleteMessage(ctx, receiveOne(ctx, receiver), nil))
			isEmpty(ctx, receiver)
			isGone(ctx, receiver)
		})
	})
	check("abandoned_message_comes_again_with_its_new_properties", func(ctx context.Context) {
		send(ctx, "abandoning", &azservicebus.Message{
			Body: []byte("x"), ApplicationProperties: map[string]any{"kept": int64(1), "changed": "before"},
		}, message("behind it"))
		receiving(ctx, "abandoning", nil, func(receiver *azservicebus.Receiver) {
			do(receiver.AbandonMessage(ctx, receiveOne(ctx, receiver), &azservicebus.AbandonMessageOptions{
				PropertiesToModify: map[string]any{"changed": "after", "added": true},
			}))
			got := receive(ctx, receiver, 2)
			again, behind := got[0], got[1]
			// At its old place, with its old number.
			same([]any{string(again.Body), again.DeliveryCount, *again.SequenceNumber}, []any{"x", 2, 1})
			same(again.ApplicationProperties, map[string]any{"kept": 1, "changed": "after", "added": true})
			same([]any{string(behind.Body), behind.DeliveryCount}, []any{"behind it", 1})
			do(receiver.CompleteMessage(ctx, again, nil))
			do(receiver.CompleteMessage(ctx, behind, nil))
			isGone(ctx, receiver)
		})
	})
	check("deferred_message_is_received_by_number", func(ctx context.Context) {
		send(ctx, "deferring", message("x"))
		receiving(ctx, "deferring", nil, func(receiver *azservicebus.Receiver) {
			got := receiveOne(ctx, receiver)
			do(receiver.DeferMessage(ctx, got, nil))
			isEmpty(ctx, receiver)
			deferred := must(receiver.ReceiveDeferredMessages(ctx, []int64{*got.SequenceNumber}, nil))
			same([]any{len(deferred), deferred[0].State}, []any{1, azservicebus.MessageStateDeferred})
			do(receiver.CompleteMessage(ctx, deferred[0], nil))
			_, err := receiver.ReceiveDeferredMessages(ctx, []int64{*got.SequenceNumber}, nil)
			holds(err != nil, "a completed message was received")
			isGone(ctx, receiver)
		})
	})
	check("dead_lettered_message_says_why", func(ctx context.Context) {
		send(ctx, "dead", message("reason"), message("none"))
		receiving(ctx, "dead", nil, func(receiver *azservicebus.Receiver) {
			got := receive(ctx, receiver, 2)
			do(receiver.DeadLetterMessage(ctx, got[0], &azservicebus.DeadLetterOptions{
				Reason: ptr("broken"), ErrorDescription: ptr("no wheels"), PropertiesToModify: map[string]any{"own": int64(1)},
			}))
			do(receiver.DeadLetterMessage(ctx, got[1], nil))
			isGone(ctx, receiver)
		})
		receiving(ctx, "dead", deadLetters, func(receiver *azservicebus.Receiver) {
			got := receive(ctx, receiver, 2)
			same([]any{string(got[0].Body), *got[0].DeadLetterReason, *got[0].DeadLetterErrorDescription},
				[]any{"reason", "broken", "no wheels"})
			same(got[0].ApplicationProperties["own"], 1)
			same([]any{string(got[1].Body), *got[1].DeadLetterReason}, []any{"none", ""}) // what this client sends for none
			same(got[0].DeliveryCount, 1)
			for _, each := range got {
				do(receiver.CompleteMessage(ctx, each, nil))
			}
			isGone(ctx, receiver)
		})
	})
	check("peek_of_an_empty_queue_is_quick", func(ctx context.Context) {
		receiving(ctx, "peeking", nil, func(receiver *azservicebus.Receiver) {
			begin := time.Now()
			isGone(ctx, receiver)
			holds(time.Since(begin) < time.Second, "it took longer than a second")
		})
	})
	check("peek_shows_every_state", func(ctx context.Context) {
		send(ctx, "peeking", message("deferred"), message("active"))
		sender := must(client.NewSender("peeking", nil))
		defer sender.Close(ctx)
		must(sender.ScheduleMessages(ctx, []*azservicebus.Message{message("scheduled")}, time.Now().Add(time.Hour), nil))
		receiving(ctx, "peeking", nil, func(receiver *azservicebus.Receiver) {
			do(receiver.DeferMessage(ctx, receiveOne(ctx, receiver), nil))
			got := peek(ctx, receiver)
			same(bodies(got), []string{"deferred", "active", "scheduled"})
			same([]any{got[0].State, got[1].State, got[2].State}, []any{
				azservicebus.MessageStateDeferred, azservicebus.MessageStateActive, azservicebus.MessageStateScheduled,
			})
			same(string(receiveOne(ctx, receiver).Body), "active")
		})
	})
}

func checkLocks() {
	check("lock_is_renewed", func(ctx context.Context) {
		send(ctx, "locks", message("renewed"))
		receiving(ctx, "locks", nil, func(receiver *azservicebus.Receiver) {
			got := receiveOne(ctx, receiver)
			before := *got.LockedUntil
			time.Sleep(3 * time.Second)
			do(receiver.RenewMessageLock(ctx, got, nil))
			holds(got.LockedUntil.After(before), "the lock does not end later")
			time.Sleep(3 * time.Second)
			do(receiver.CompleteMessage(ctx, got, nil))
			isGone(ctx, receiver)
		})
	})
	check("lock_that_ended_is_lost", func(ctx context.Context) {
		send(ctx, "locks", message("lost"))
		receiving(ctx, "locks", nil, func(receiver *azservicebus.Receiver) {
			got := receiveOne(ctx, receiver)
			time.Sleep(5500 * time.Millisecond)
			refused(azservicebus.CodeLockLost, receiver.CompleteMessage(ctx, got, nil))
			again := receiveOne(ctx, receiver)
			same([]any{string(again.Body), again.DeliveryCount}, []any{"lost", 2})
			do(receiver.CompleteMessage(ctx, again, nil))
			isGone(ctx, receiver)
		})
	})
	check("settles_through_another_client", func(ctx context.Context) {
		send(ctx, "other-client", message("x"))
		var got *azservicebus.ReceivedMessage
		receiving(ctx, "other-client", nil, func(receiver *azservicebus.Receiver) { got = receiveOne(ctx, receiver) })
		by := must(newClient(plain))
		defer by.Close(ctx)
		receivingBy(ctx, by, "other-client", nil, func(receiver *azservicebus.Receiver) {
			do(receiver.RenewMessageLock(ctx, got, nil))
			do(receiver.CompleteMessage(ctx, got, nil))
			isGone(ctx, receiver)
		})
	})
	check("unknown_lock_token_is_not_retried", func(ctx context.Context) {
		const delay = 20 * time.Second
		patient := azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: delay, MaxRetryDelay: delay}
		by := must(azservicebus.NewClientFromConnectionString(plain, &azservicebus.ClientOptions{RetryOptions: patient}))
		defer by.Close(ctx)
		receivingBy(ctx, by, "locks", nil, func(receiver *azservicebus.Receiver) {
			begin := time.Now()
			refused(azservicebus.CodeLockLost, receiver.RenewMessageLock(ctx, &azservicebus.ReceivedMessage{}, nil))
			holds(time.Since(begin) < delay/2, "it was tried again") // a delay varies, and is shorter by a fifth at most
		})
	})
}

func checkTimes() {
	check("expired_message_is_dead_lettered", func(ctx context.Context) {
		send(ctx, "expiring", &azservicebus.Message{Body: []byte("x"), TimeToLive: ptr(time.Second)})
		receiving(ctx, "expiring", deadLetters, func(receiver *azservicebus.Receiver) {
			dead := receiveOne(ctx, receiver)
			same([]any{string(dead.Body), *dead.DeadLetterReason}, []any{"x", "TTLExpiredException"})
			holds(time.Since(*dead.EnqueuedTime) >= time.Second, "it was there for less than a second")
		})
		receiving(ctx, "expiring", nil, func(receiver *azservicebus.Receiver) { isGone(ctx, receiver) })
	})
	check("scheduled_message_comes_in_time_and_a_cancelled_one_never", func(ctx context.Context) {
		sender := must(client.NewSender("scheduling", nil))
		defer sender.Close(ctx)
		due := time.Now().Truncate(time.Second).Add(3 * time.Second)
		numbers := must(sender.ScheduleMessages(ctx, []*azservicebus.Message{message("x"), message("cancelled")}, due, nil))
		same(len(numbers), 2)
		do(sender.CancelScheduledMessages(ctx, numbers[1:], nil))
		receiving(ctx, "scheduling", nil, func(receiver *azservicebus.Receiver) {
			got := receiveOne(ctx, receiver)
			late := time.Since(due)
			holds(late >= 0 && late < time.Second, "it came "+late.String()+" behind its time")
			same([]any{string(got.Body), got.EnqueuedTime.Truncate(time.Second).Unix()}, []any{"x", due.Unix()})
			do(receiver.CompleteMessage(ctx, got, nil))
			isEmpty(ctx, receiver)
			isGone(ctx, receiver)
		})
	})
	check("duplicate_is_stored_once", func(ctx context.Context) {
		send(ctx, "duplicates",
			&azservicebus.Message{Body: []byte("first"), MessageID: ptr("id")},
			&azservicebus.Message{Body: []byte("second"), MessageID: ptr("id")},
			&azservicebus.Message{Body: []byte("other"), MessageID: ptr("other")})
		receiving(ctx, "duplicates", nil, func(receiver *azservicebus.Receiver) {
			same(bodies(receive(ctx, receiver, 2)), []string{"first", "other"})
			isEmpty(ctx, receiver)
		})
	})
	check("key_or_turn_chooses_the_fragment", func(ctx context.Context) {
		for _, body := range []string{"a", "b"} {
			send(ctx, "spread", &azservicebus.Message{Body: []byte(body), PartitionKey: ptr("key")})
		}
		for _, body := range []string{"0", "1", "2"} {
			send(ctx, "spread", message(body))
		}
		receiving(ctx, "spread", nil, func(receiver *azservicebus.Receiver) {
			fragments := map[string]int64{}
			for _, each := range receive(ctx, receiver, 5) {
				fragments[string(each.Body)] = *each.SequenceNumber >> 48
			}
			same(fragments["a"], fragments["b"])
			first := fragments["0"]
			same([]int64{fragments["1"], fragments["2"]}, []int64{(first + 1) % 16, (first + 2) % 16})
		})
	})
}
