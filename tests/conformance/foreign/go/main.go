// Everything that an application does with azeventhubs, against the namespace that the environment names.
// Each check prints one JSON line; checks run one after the other.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

const checkLimit = 45 * time.Second

var (
	plain = os.Getenv("HUBWEIR_PLAIN")
	hub   = os.Getenv("HUBWEIR_HUB")
	// The library's own defaults wait for seconds between attempts.
	retries = azeventhubs.RetryOptions{MaxRetries: 2, RetryDelay: 200 * time.Millisecond}

	producer *azeventhubs.ProducerClient
	consumer *azeventhubs.ConsumerClient
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "soak" {
		soak()
		return
	}
	producer = must(newProducer(plain, hub))
	consumer = must(newConsumer(plain, hub, azeventhubs.DefaultConsumerGroup))
	checkConnecting()
	checkSending()
	checkKeys()
	checkReceiving()
	checkErrors()
	checkOwnerLevels()
	checkResuming()
}

func newProducer(connectionString, name string) (*azeventhubs.ProducerClient, error) {
	return azeventhubs.NewProducerClientFromConnectionString(
		connectionString, name, &azeventhubs.ProducerClientOptions{RetryOptions: retries})
}

func newConsumer(connectionString, name, group string) (*azeventhubs.ConsumerClient, error) {
	return azeventhubs.NewConsumerClientFromConnectionString(
		connectionString, name, group, &azeventhubs.ConsumerClientOptions{RetryOptions: retries})
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func say(line map[string]any) {
	fmt.Println(string(must(json.Marshal(line))))
}

// check runs body within the limit; an error or a panic (of must) makes it not ok.
func check(name string, body func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	err := func() (err error) {
		defer func() {
			if problem := recover(); problem != nil {
				err = fmt.Errorf("%v", problem)
			}
		}()
		return body(ctx)
	}()
	detail := ""
	if err != nil {
		detail = err.Error()
	}
	say(map[string]any{"check": name, "ok": err == nil, "detail": detail})
}

// same is an error when got and want differ in any value.
func same(got, want any) error {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("got %.300v, want %.300v", got, want)
	}
	return nil
}

// restartServer asks for a restart and returns when the server runs again.
func restartServer() {
	say(map[string]any{"ask": "restart"})
	_ = must(bufio.NewReader(os.Stdin).ReadString('\n'))
}
