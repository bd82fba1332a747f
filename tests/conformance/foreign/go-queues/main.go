// Everything that an application does with queues and topics by azservicebus, against the namespace that the environment names.
// Each check prints one JSON line; checks run one after the other: those that HUBWEIR_CHECKS names, else all.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	checkLimit = 45 * time.Second
	wait       = 15 * time.Second
	quiet      = 500 * time.Millisecond
)

var (
	plain  = os.Getenv("HUBWEIR_PLAIN")
	wanted = os.Getenv("HUBWEIR_CHECKS")
	// The library's own defaults wait for seconds between attempts.
	retries = azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: 200 * time.Millisecond}
	client  = must(newClient(plain))
)

func main() {
	checkConnecting()
	checkSending()
	checkReceiving()
	checkLocks()
	checkTimes()
	checkSessions()
	checkErrors()
	checkTopics()
	checkAdministration()
}

func newClient(connectionString string) (*azservicebus.Client, error) {
	return azservicebus.NewClientFromConnectionString(
		connectionString, &azservicebus.ClientOptions{RetryOptions: retries})
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func do(err error) {
	if err != nil {
		panic(err)
	}
}

// check runs body within the limit; a panic (of must, do, same) makes it not ok.
func check(name string, body func(ctx context.Context)) {
	if wanted != "" && !slices.Contains(strings.Split(wanted, ","), name) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	detail := func() (detail string) {
		defer func() {
			if problem := recover(); problem != nil {
				detail = fmt.Sprint(problem)
			}
		}()
		body(ctx)
		return ""
	}()
	line := map[string]any{"check": name, "ok": detail == "", "detail": detail}
	fmt.Println(string(must(json.Marshal(line))))
}

// same panics when got and want differ in any value.
func same(got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		panic(fmt.Sprintf("got %.300s, want %.300s", fmt.Sprint(got), fmt.Sprint(want)))
	}
}

func holds(condition bool, otherwise string) {
	if !condition {
		panic(otherwise)
	}
}

// refused panics unless err has the client's code.
func refused(code azservicebus.Code, err error) {
	var refusal *azservicebus.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		panic(fmt.Sprintf("want code %q, got: %v", code, err))
	}
}

func ptr[T any](value T) *T {
	return &value
}

func message(body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body)}
}

func of(session, body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body), SessionID: &session}
}

func send(ctx context.Context, queue string, messages ...*azservicebus.Message) {
	do(trySend(ctx, client, queue, messages...))
}

func trySend(ctx context.Context, by *azservicebus.Client, queue string, messages ...*azservicebus.Message) error {
	sender, err := by.NewSender(queue, nil)
	if err != nil {
		return err
	}
	defer sender.Close(ctx)
	for _, each := range messages {
		if err := sender.SendMessage(ctx, each, nil); err != nil {
			return err
		}
	}
	return nil
}

// receiving runs body with a receiver of a queue, and closes it.
func receiving(ctx context.Context, queue string, options *azservicebus.ReceiverOptions, body func(*azservicebus.Receiver)) {
	receivingBy(ctx, client, queue, options, body)
}

func receivingBy(
	ctx context.Context, by *azservicebus.Client, queue string, options *azservicebus.ReceiverOptions,
	body func(*azservicebus.Receiver),
) {
	receiver := must(by.NewReceiverForQueue(queue, options))
	defer receiver.Close(ctx)
	body(receiver)
}

type source interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// receive returns the next messages, exactly so many.
func receive(ctx context.Context, from source, count int) []*azservicebus.ReceivedMessage {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var got []*azservicebus.ReceivedMessage
	for len(got) < count {
		got = append(got, must(from.ReceiveMessages(limited, count-len(got), nil))...)
	}
	return got
}

func receiveOne(ctx context.Context, from source) *azservicebus.ReceivedMessage {
	return receive(ctx, from, 1)[0]
}

// isEmpty panics when something comes within a while.
func isEmpty(ctx context.Context, from source) {
	limited, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	got, err := from.ReceiveMessages(limited, 1, nil)
	holds(len(got) == 0 && errors.Is(err, context.DeadlineExceeded), fmt.Sprintf("came: %v, %v", got, err))
}

func bodies(messages []*azservicebus.ReceivedMessage) []string {
	var texts []string
	for _, each := range messages {
		texts = append(texts, string(each.Body))
	}
	return texts
}

// isGone panics when there is anything at all, also what is locked: what is only kept from this receiver would be seen.
func isGone(ctx context.Context, receiver *azservicebus.Receiver) {
	same(bodies(peek(ctx, receiver)), []string{})
}

func peek(ctx context.Context, receiver *azservicebus.Receiver) []*azservicebus.ReceivedMessage {
	return must(receiver.PeekMessages(ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: ptr(int64(1))}))
}
