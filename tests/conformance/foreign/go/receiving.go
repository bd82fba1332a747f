package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

// checkReceiving: ten events with times of their own, and where reading can begin.
func checkReceiving() {
	var sent []string
	var ten events
	check("receives_from_earliest", func(ctx context.Context) error {
		for index := range 10 {
			sent = append(sent, fmt.Sprint("ten ", index))
			if err := send(ctx, producer, toPartition("0"), sent[index]); err != nil {
				return err
			}
			time.Sleep(3 * time.Millisecond) // the next event gets a later enqueued time
		}
		ten = must(read(ctx, consumer, "0", earliest(), 10))
		return errors.Join(same(ten.bodies(), sent), same(ten[9].SequenceNumber, 9))
	})
	four := int64(4)
	for _, each := range []struct {
		name  string
		first int
		start func() azeventhubs.StartPosition
	}{
		{"receives_after_offset", 5, func() azeventhubs.StartPosition {
			return azeventhubs.StartPosition{Offset: &ten[4].Offset}
		}},
		{"receives_at_offset", 4, func() azeventhubs.StartPosition {
			return azeventhubs.StartPosition{Offset: &ten[4].Offset, Inclusive: true}
		}},
		{"receives_after_sequence_number", 5, func() azeventhubs.StartPosition { return afterNumber(4) }},
		{"receives_at_sequence_number", 4, func() azeventhubs.StartPosition {
			return azeventhubs.StartPosition{SequenceNumber: &four, Inclusive: true}
		}},
		{"receives_after_time", 5, func() azeventhubs.StartPosition {
			return azeventhubs.StartPosition{EnqueuedTime: ten[4].EnqueuedTime}
		}},
	} {
		check(each.name, func(ctx context.Context) error {
			got := must(read(ctx, consumer, "0", each.start(), 10-each.first))
			return same(got.bodies(), sent[each.first:])
		})
	}
	check("receives_from_latest", receivesFromLatest)
	check("receives_beyond_the_first_credit", func(ctx context.Context) error {
		start := lastNumber(ctx, "0")
		var many []string
		for index := range 1000 {
			many = append(many, fmt.Sprint(index))
		}
		if err := send(ctx, producer, toPartition("0"), many...); err != nil {
			return err
		}
		return same(must(read(ctx, consumer, "0", afterNumber(start), 1000)).bodies(), many)
	})
}

// When the link stands is not told to the application: it sends until something arrives.
func receivesFromLatest(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	sending := make(chan error, 1)
	go func() {
		var err error
		for index := 0; err == nil && ctx.Err() == nil; index++ {
			err = send(ctx, producer, toPartition("0"), fmt.Sprint("late ", index))
			time.Sleep(50 * time.Millisecond)
		}
		sending <- err
	}()
	got, err := read(ctx, consumer, "0", latest(), 1)
	cancel()
	if failed := <-sending; err == nil && failed != nil && !errors.Is(failed, context.Canceled) {
		err = failed
	}
	if err != nil {
		return err
	}
	if got[0].SequenceNumber < 10 || !strings.HasPrefix(string(got[0].Body), "late ") {
		return fmt.Errorf("got %s at %d", got[0].Body, got[0].SequenceNumber)
	}
	return nil
}

func checkResuming() {
	check("resumes_by_sequence_number", func(ctx context.Context) error {
		start := lastNumber(ctx, "2")
		var got []string
		for _, names := range [][]string{{"a", "b", "c"}, {"d", "e"}} {
			if err := send(ctx, producer, toPartition("2"), names...); err != nil {
				return err
			}
			client := must(newConsumer(plain, hub, azeventhubs.DefaultConsumerGroup))
			some := must(read(ctx, client, "2", afterNumber(start), len(names)))
			if err := client.Close(ctx); err != nil {
				return err
			}
			got = append(got, some.bodies()...)
			start = some[len(some)-1].SequenceNumber
		}
		return same(got, []string{"a", "b", "c", "d", "e"})
	})
	check("reader_and_sender_survive_a_server_restart", func(ctx context.Context) error {
		start := afterNumber(lastNumber(ctx, "2"))
		reader := must(consumer.NewPartitionClient("2", &azeventhubs.PartitionClientOptions{StartPosition: start}))
		defer reader.Close(context.Background())
		if err := send(ctx, producer, toPartition("2"), "before"); err != nil {
			return err
		}
		first := must(receive(ctx, reader, 1))
		restartServer()
		if err := send(ctx, producer, toPartition("2"), "after"); err != nil {
			return err
		}
		second := must(receive(ctx, reader, 1))
		return same(append(first, second...).bodies(), []string{"before", "after"})
	})
}
