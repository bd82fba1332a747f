package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

// refusedWith is an error unless err has the client's code.
func refusedWith(code azeventhubs.ErrorCode, err error) error {
	var refusal *azeventhubs.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		return fmt.Errorf("want code %q, got: %v", code, err)
	}
	return nil
}

// refusedSaying is an error unless err's text has all of the needles: this client has no codes of its own for them.
func refusedSaying(err error, needles ...string) error {
	if err == nil {
		return errors.New("it was not refused")
	}
	for _, needle := range needles {
		if !strings.Contains(err.Error(), needle) {
			return fmt.Errorf("%q is missing in: %w", needle, err)
		}
	}
	return nil
}

func checkErrors() {
	notFound := []string{"amqp:not-found", "The messaging entity", "could not be found"}
	outOfRange := []string{
		"com.microsoft:argument-out-of-range",
		"The specified partition is invalid for an EventHub partition sender or receiver",
	}
	missing := must(newProducer(plain, "no-such-hub"))
	defer missing.Close(context.Background())
	check("missing_hub_is_not_found_by_sender", func(ctx context.Context) error {
		return refusedSaying(send(ctx, missing, nil, "x"), "could not be found")
	})
	check("missing_hub_is_not_found_by_properties", func(ctx context.Context) error {
		_, err := missing.GetEventHubProperties(ctx, nil)
		return refusedSaying(err, "could not be found")
	})
	check("missing_hub_is_not_found_by_receiver", func(ctx context.Context) error {
		client := must(newConsumer(plain, "no-such-hub", azeventhubs.DefaultConsumerGroup))
		defer client.Close(context.Background())
		_, err := read(ctx, client, "0", earliest(), 1)
		return refusedSaying(err, "could not be found")
	})
	check("missing_consumer_group_is_not_found", func(ctx context.Context) error {
		client := must(newConsumer(plain, hub, "nobody"))
		defer client.Close(context.Background())
		_, err := read(ctx, client, "0", earliest(), 1)
		return refusedSaying(err, notFound...)
	})
	check("unknown_partition_is_refused_to_sender", func(ctx context.Context) error {
		return refusedSaying(send(ctx, producer, toPartition("1000"), "x"), outOfRange...)
	})
	check("unknown_partition_is_refused_to_receiver", func(ctx context.Context) error {
		_, err := read(ctx, consumer, "1000", earliest(), 1)
		return refusedSaying(err, outOfRange...)
	})
	check("unknown_partition_has_no_properties", func(ctx context.Context) error {
		_, err := producer.GetPartitionProperties(ctx, "XYZ", nil)
		return refusedSaying(err, outOfRange[1])
	})
}

// checkOwnerLevels: the levels are the epochs of the protocol.
func checkOwnerLevels() {
	check("higher_owner_level_takes_over", func(ctx context.Context) error {
		loser := hold(1)
		defer loser.Close(context.Background())
		winner := hold(2)
		defer winner.Close(context.Background())
		lost := make(chan error, 1)
		go func() { lost <- wait(ctx, loser, 5*time.Second) }()
		time.Sleep(500 * time.Millisecond) // the loser's link stands
		_ = wait(ctx, winner, time.Second)
		return refusedWith(azeventhubs.ErrorCodeOwnershipLost, <-lost)
	})
	check("lower_owner_level_is_refused", func(ctx context.Context) error {
		holder := hold(5)
		defer holder.Close(context.Background())
		_ = wait(ctx, holder, time.Second)
		late := hold(4)
		defer late.Close(context.Background())
		// The client knows a lost partition by the end of a link only: what refuses a new link it tells as it came.
		return refusedSaying(wait(ctx, late, 5*time.Second), "amqp:link:stolen", "with a higher epoch '5' already exists")
	})
}

func hold(level int64) *azeventhubs.PartitionClient {
	return must(consumer.NewPartitionClient("3",
		&azeventhubs.PartitionClientOptions{StartPosition: latest(), OwnerLevel: &level}))
}

// wait receives until the time is over; what ended it earlier is returned.
func wait(ctx context.Context, partition *azeventhubs.PartitionClient, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := partition.ReceiveEvents(ctx, 1, nil)
	return err
}
