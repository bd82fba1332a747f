package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

const mebibyte = 1 << 20

func checkSending() {
	check("partition_properties_count_what_was_sent", func(ctx context.Context) error {
		before := lastNumber(ctx, "1")
		if err := send(ctx, producer, toPartition("1"), "1", "2", "3"); err != nil {
			return err
		}
		after := must(producer.GetPartitionProperties(ctx, "1", nil))
		return errors.Join(same(after.LastEnqueuedSequenceNumber, before+3), same(after.IsEmpty, false))
	})
	check("single_event_keeps_body_and_properties", singleEvent)
	check("batch_stays_together_and_in_order", func(ctx context.Context) error {
		start := lastNumber(ctx, "1")
		var sent []string
		for index := range 250 {
			sent = append(sent, fmt.Sprint("event ", index))
		}
		if err := send(ctx, producer, toPartition("1"), sent...); err != nil {
			return err
		}
		got := must(read(ctx, consumer, "1", afterNumber(start), len(sent)))
		return errors.Join(same(got.bodies(), sent), same(got[249].SequenceNumber, start+250))
	})
	check("sends_to_the_partition_it_names", func(ctx context.Context) error {
		one, two := lastNumber(ctx, "1"), lastNumber(ctx, "2")
		if err := send(ctx, producer, toPartition("2"), "here"); err != nil {
			return err
		}
		return errors.Join(same(lastNumber(ctx, "1"), one), same(lastNumber(ctx, "2"), two+1))
	})
	// The batch learns the limit from the link and is the client's own guard: it sends nothing larger.
	check("batch_limit_is_a_mebibyte", func(ctx context.Context) error {
		batch := must(producer.NewEventDataBatch(ctx, toPartition("2")))
		if err := batch.AddEventData(&azeventhubs.EventData{Body: make([]byte, mebibyte-1024)}, nil); err != nil {
			return err
		}
		before := lastNumber(ctx, "2")
		err := producer.SendEventDataBatch(ctx, batch, nil)
		return errors.Join(err, same(lastNumber(ctx, "2"), before+1))
	})
	check("oversize_is_refused", func(ctx context.Context) error {
		err := send(ctx, producer, toPartition("2"), strings.Repeat("x", mebibyte))
		if !errors.Is(err, azeventhubs.ErrEventDataTooLarge) {
			return fmt.Errorf("not refused: %v", err)
		}
		return nil
	})
	check("link_is_usable_after_oversize", func(ctx context.Context) error { return roundTrip(ctx, "small again") })
	check("quarter_mebibyte_event_arrives", func(ctx context.Context) error {
		return roundTrip(ctx, strings.Repeat("q", 250*1024))
	})
	check("without_key_every_partition_is_used", func(ctx context.Context) error {
		client := must(newProducer(plain, "keys-4"))
		defer client.Close(context.Background())
		for index := range 16 {
			if err := send(ctx, client, nil, fmt.Sprint("spread ", index)); err != nil {
				return err
			}
		}
		for _, id := range []string{"0", "1", "2", "3"} {
			if must(client.GetPartitionProperties(ctx, id, nil)).IsEmpty {
				return fmt.Errorf("partition %s is empty", id)
			}
		}
		return nil
	})
}

func roundTrip(ctx context.Context, body string) error {
	start := lastNumber(ctx, "2")
	if err := send(ctx, producer, toPartition("2"), body); err != nil {
		return err
	}
	return same(must(read(ctx, consumer, "2", afterNumber(start), 1)).bodies(), []string{body})
}

func singleEvent(ctx context.Context) error {
	start := lastNumber(ctx, "1")
	id, kind, when := "message 1", "application/octet-stream", time.UnixMilli(1_700_000_000_000).UTC()
	batch := must(producer.NewEventDataBatch(ctx, toPartition("1")))
	err := batch.AddEventData(&azeventhubs.EventData{
		Body:          []byte{0, 1, 254, 255},
		Properties:    map[string]any{"text": "ünïcode", "number": int64(42), "flag": true, "when": when},
		MessageID:     &id,
		CorrelationID: "correlation 1",
		ContentType:   &kind,
	}, nil)
	if err != nil {
		return err
	}
	if err := producer.SendEventDataBatch(ctx, batch, nil); err != nil {
		return err
	}
	got := must(read(ctx, consumer, "1", afterNumber(start), 1))[0]
	return errors.Join(
		same(got.Body, []byte{0, 1, 254, 255}),
		same(got.Properties["text"], "ünïcode"),
		same(got.Properties["number"], 42),
		same(got.Properties["flag"], true),
		same(got.Properties["when"].(time.Time).UTC(), when),
		same(*got.MessageID, id),
		same(got.CorrelationID, "correlation 1"),
		same(*got.ContentType, kind),
		same(time.Since(*got.EnqueuedTime).Abs() < time.Minute, true))
}

func checkKeys() {
	var vectors map[string]map[string]int
	if err := json.Unmarshal(must(os.ReadFile(os.Getenv("HUBWEIR_KEY_VECTORS"))), &vectors); err != nil {
		panic(err)
	}
	check("single_and_batch_of_a_key_share_a_partition", func(ctx context.Context) error {
		client := must(newProducer(plain, "keys-8"))
		defer client.Close(context.Background())
		err := errors.Join(
			send(ctx, client, byKey("shared"), "single"),
			send(ctx, client, byKey("shared"), "first", "second"))
		if err != nil {
			return err
		}
		ids := everything(ctx, client, "keys-8")["shared"]
		return same(ids, []string{ids[0], ids[0], ids[0]})
	})
	for _, count := range []string{"2", "4", "8", "32"} {
		check("keys_agree_on_"+count+"_partitions", func(ctx context.Context) error {
			client := must(newProducer(plain, "keys-"+count))
			defer client.Close(context.Background())
			for key := range vectors {
				if err := send(ctx, client, byKey(key), key); err != nil {
					return err
				}
			}
			found := everything(ctx, client, "keys-"+count)
			var problems []error
			for key, expected := range vectors {
				problems = append(problems, same(key+fmt.Sprint(found[key]), fmt.Sprint(key, []int{expected[count]})))
			}
			return errors.Join(problems...)
		})
	}
}

// everything reads a whole hub; for each partition key, the partitions of its events.
func everything(ctx context.Context, client *azeventhubs.ProducerClient, name string) map[string][]string {
	reader := must(newConsumer(plain, name, azeventhubs.DefaultConsumerGroup))
	defer reader.Close(context.Background())
	found := map[string][]string{}
	for _, id := range must(client.GetEventHubProperties(ctx, nil)).PartitionIDs {
		properties := must(client.GetPartitionProperties(ctx, id, nil))
		if properties.IsEmpty {
			continue
		}
		for _, event := range must(read(ctx, reader, id, earliest(), int(properties.LastEnqueuedSequenceNumber)+1)) {
			if event.PartitionKey != nil {
				found[*event.PartitionKey] = append(found[*event.PartitionKey], id)
			}
		}
	}
	return found
}
