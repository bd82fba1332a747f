package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func checkConnecting() {
	roundTrip := func(ctx context.Context, by *azservicebus.Client, queue string) {
		do(trySend(ctx, by, queue, message("hello")))
		receiver := must(by.NewReceiverForQueue(queue, nil))
		defer receiver.Close(ctx)
		got := receiveOne(ctx, receiver)
		same(string(got.Body), "hello")
		do(receiver.CompleteMessage(ctx, got, nil))
	}
	check("connects_over_plain_tcp", func(ctx context.Context) { roundTrip(ctx, client, "plain") })
	check("connects_over_tls", func(ctx context.Context) {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(must(os.ReadFile(os.Getenv("HUBWEIR_CA_FILE"))))
		// Left alone, this client would look for host:port in the certificate.
		trust := &tls.Config{RootCAs: pool, ServerName: os.Getenv("HUBWEIR_HOST")}
		by := must(azservicebus.NewClientFromConnectionString(os.Getenv("HUBWEIR_TLS"),
			&azservicebus.ClientOptions{RetryOptions: retries, TLSConfig: trust}))
		defer by.Close(ctx)
		roundTrip(ctx, by, "tls")
	})
	check("wrong_key_is_unauthorised", func(ctx context.Context) {
		by := must(newClient(os.Getenv("HUBWEIR_WRONG_KEY")))
		defer by.Close(ctx)
		refused(azservicebus.CodeUnauthorizedAccess, trySend(ctx, by, "plain", message("x")))
	})
}

func checkSending() {
	check("single_message_keeps_body_and_properties", func(ctx context.Context) {
		own := map[string]any{"int": int64(1), "real": 0.5, "text": "é", "yes": true, "small": uint8(7)}
		sent := &azservicebus.Message{
			Body: []byte{0, 1}, MessageID: ptr("id"), ContentType: ptr("text/plain"), CorrelationID: ptr("correlation"),
			Subject: ptr("subject"), To: ptr("to"), ReplyTo: ptr("reply to"), ReplyToSessionID: ptr("reply session"),
			SessionID: ptr("key"), PartitionKey: ptr("key"), TimeToLive: ptr(10 * time.Minute), ApplicationProperties: own,
		}
		send(ctx, "single", sent)
		receiving(ctx, "single", nil, func(receiver *azservicebus.Receiver) {
			got := receiveOne(ctx, receiver)
			same(got.Body, sent.Body)
			same(got.ApplicationProperties, own)
			same(
				[]any{got.MessageID, *got.ContentType, *got.CorrelationID, *got.Subject, *got.To, *got.ReplyTo},
				[]any{"id", "text/plain", "correlation", "subject", "to", "reply to"})
			same([]any{*got.ReplyToSessionID, *got.SessionID, *got.PartitionKey}, []any{"reply session", "key", "key"})
			same([]any{*got.TimeToLive, got.ExpiresAt.Sub(*got.EnqueuedTime)}, []any{10 * time.Minute, 10 * time.Minute})
			same(got.DeliveryCount, 1) // this client counts from one
			names := map[any]bool{}
			for name := range got.RawAMQPMessage.MessageAnnotations {
				names[name] = true
			}
			same(names, map[any]bool{
				"x-opt-enqueued-time": true, "x-opt-locked-until": true, "x-opt-partition-key": true,
				"x-opt-sequence-number": true,
			})
			do(receiver.CompleteMessage(ctx, got, nil))
		})
	})
	check("message_sent_again_is_a_new_one", func(ctx context.Context) {
		send(ctx, "again", &azservicebus.Message{
			Body: []byte("x"), MessageID: ptr("id"), Subject: ptr("s"), SessionID: ptr("key"), PartitionKey: ptr("key"),
			TimeToLive: ptr(10 * time.Minute), ApplicationProperties: map[string]any{"own": int64(1)},
		})
		receiving(ctx, "again", nil, func(receiver *azservicebus.Receiver) {
			do(receiver.AbandonMessage(ctx, receiveOne(ctx, receiver), nil))
			first := receiveOne(ctx, receiver)
			same(first.DeliveryCount, 2)
			sender := must(client.NewSender("again", nil))
			defer sender.Close(ctx)
			do(sender.SendAMQPAnnotatedMessage(ctx, first.RawAMQPMessage, nil))
			second := receiveOne(ctx, receiver)
			same([]any{string(second.Body), *second.Subject, second.ApplicationProperties, second.DeliveryCount},
				[]any{"x", "s", map[string]any{"own": 1}, 1})
			same([]any{second.MessageID, *second.SessionID, *second.PartitionKey, *second.TimeToLive},
				[]any{"id", "key", "key", 10 * time.Minute})
			holds(*second.SequenceNumber > *first.SequenceNumber, "it has no new number")
			holds(second.LockToken != first.LockToken, "it has no new lock")
		})
	})
	check("batch_is_its_messages_in_order", func(ctx context.Context) {
		sender := must(client.NewSender("batch", nil))
		defer sender.Close(ctx)
		batch := must(sender.NewMessageBatch(ctx, nil))
		do(batch.AddMessage(&azservicebus.Message{Body: []byte("a"), Subject: ptr("first")}, nil))
		do(batch.AddMessage(message("b"), nil))
		do(batch.AddMessage(message("c"), nil))
		do(sender.SendMessageBatch(ctx, batch, nil))
		receiving(ctx, "batch", nil, func(receiver *azservicebus.Receiver) {
			got := receive(ctx, receiver, 3)
			same(bodies(got), []string{"a", "b", "c"})
			same([]any{*got[0].Subject, got[1].Subject == nil}, []any{"first", true})
			same([]any{*got[0].SequenceNumber, *got[2].SequenceNumber}, []any{1, 3})
			isEmpty(ctx, receiver)
		})
	})
	check("oversize_is_refused", func(ctx context.Context) {
		err := trySend(ctx, client, "small", &azservicebus.Message{Body: make([]byte, 1_000_000)})
		holds(errors.Is(err, azservicebus.ErrMessageTooLarge), "refused with: "+errorText(err))
		send(ctx, "small", message("after it"))
		receiving(ctx, "small", nil, func(receiver *azservicebus.Receiver) {
			same(bodies(peek(ctx, receiver)), []string{"after it"})
		})
	})
}

func errorText(err error) string {
	if err == nil {
		return "nothing"
	}
	return err.Error()
}
