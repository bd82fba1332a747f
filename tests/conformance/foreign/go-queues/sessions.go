package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func checkSessions() {
	check("named_session_is_received_in_order", func(ctx context.Context) {
		send(ctx, "named-session", of("a", "a1"), of("b", "b1"), of("a", "a2"), of("b", "b2"), of("a", "a3"))
		empty := must(client.AcceptSessionForQueue(ctx, "named-session", "nothing in it", nil))
		isEmpty(ctx, empty)
		do(empty.Close(ctx))
		receiver := must(client.AcceptSessionForQueue(ctx, "named-session", "a", nil))
		defer receiver.Close(ctx)
		same(receiver.SessionID(), "a")
		left := time.Until(receiver.LockedUntil())
		holds(left > 50*time.Second && left <= 60*time.Second, "the lock ends in "+left.String())
		do(receiver.AbandonMessage(ctx, receiveOne(ctx, receiver), nil)) // and it stays the first
		got := receive(ctx, receiver, 3)
		same(bodies(got), []string{"a1", "a2", "a3"})
		same([]any{got[0].DeliveryCount, got[1].DeliveryCount, got[2].DeliveryCount}, []any{2, 1, 1})
	})
	check("next_session_is_the_oldest", func(ctx context.Context) {
		send(ctx, "next-session", of("first", "1"), of("second", "2"))
		one := must(client.AcceptNextSessionForQueue(ctx, "next-session", nil))
		defer one.Close(ctx)
		two := must(client.AcceptNextSessionForQueue(ctx, "next-session", nil))
		defer two.Close(ctx)
		same([]string{one.SessionID(), two.SessionID()}, []string{"first", "second"})
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		// This client leaves it to the service how long it waits, which is a minute.
		_, err := client.AcceptNextSessionForQueue(limited, "next-session", nil)
		holds(errors.Is(err, context.DeadlineExceeded), "a third session: "+errorText(err))
	})
	check("held_session_cannot_be_locked", func(ctx context.Context) {
		held := must(client.AcceptSessionForQueue(ctx, "held-session", "s", nil))
		defer held.Close(ctx)
		_, err := client.AcceptSessionForQueue(ctx, "held-session", "s", nil)
		holds(strings.Contains(errorText(err), "session-cannot-be-locked"), "refused with: "+errorText(err))
	})
	check("renewed_session_lock_ends_later", func(ctx context.Context) {
		receiver := must(client.AcceptSessionForQueue(ctx, "held-session", "renewed", nil))
		defer receiver.Close(ctx)
		before := receiver.LockedUntil()
		time.Sleep(50 * time.Millisecond)
		do(receiver.RenewSessionLock(ctx, nil))
		later := receiver.LockedUntil().Sub(before)
		holds(later >= 50*time.Millisecond && later < 50*time.Second, "the lock ends later by "+later.String())
	})
	check("session_state_is_kept_and_cleared", func(ctx context.Context) {
		receiver := must(client.AcceptSessionForQueue(ctx, "state", "s", nil))
		same(len(must(receiver.GetSessionState(ctx, nil))), 0)
		do(receiver.SetSessionState(ctx, []byte("état"), nil))
		do(receiver.Close(ctx))
		receiver = must(client.AcceptSessionForQueue(ctx, "state", "s", nil))
		defer receiver.Close(ctx)
		same(string(must(receiver.GetSessionState(ctx, nil))), "état")
		do(receiver.SetSessionState(ctx, nil, nil))
		same(len(must(receiver.GetSessionState(ctx, nil))), 0)
	})
}

func checkErrors() {
	check("missing_queue_is_not_found", func(ctx context.Context) {
		begin := time.Now()
		refused(azservicebus.CodeNotFound, trySend(ctx, client, "nowhere", message("x")))
		receiving(ctx, "nowhere", nil, func(receiver *azservicebus.Receiver) {
			_, err := receiver.ReceiveMessages(ctx, 1, nil)
			refused(azservicebus.CodeNotFound, err)
		})
		holds(time.Since(begin) < 10*time.Second, "it took longer than 10 s")
	})
	check("queue_without_sends_is_disabled", func(ctx context.Context) {
		err := trySend(ctx, client, "no-sends", message("x"))
		holds(strings.Contains(errorText(err), "com.microsoft:entity-disabled"), "refused with: "+errorText(err))
	})
	check("queue_without_receives_is_disabled", func(ctx context.Context) {
		receiving(ctx, "no-receives", nil, func(receiver *azservicebus.Receiver) {
			_, err := receiver.ReceiveMessages(ctx, 1, nil)
			holds(strings.Contains(errorText(err), "com.microsoft:entity-disabled"), "refused with: "+errorText(err))
		})
	})
	check("wrong_kind_of_receiver_is_refused", func(ctx context.Context) {
		receiving(ctx, "state", nil, func(receiver *azservicebus.Receiver) {
			_, err := receiver.ReceiveMessages(ctx, 1, nil)
			holds(strings.Contains(errorText(err), "non-sessionful message receiver"), "plain: "+errorText(err))
		})
		_, err := client.AcceptSessionForQueue(ctx, "plain", "s", nil)
		holds(strings.Contains(errorText(err), "sessionful message receiver cannot be created"), "session: "+errorText(err))
	})
}
