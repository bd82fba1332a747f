package main

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

type events []*azeventhubs.ReceivedEventData

func (list events) bodies() []string {
	var all []string
	for _, event := range list {
		all = append(all, string(event.Body))
	}
	return all
}

// send puts one batch of these bodies where options say: to a partition, by a key, anywhere.
func send(ctx context.Context, to *azeventhubs.ProducerClient, options *azeventhubs.EventDataBatchOptions, bodies ...string) error {
	batch, err := to.NewEventDataBatch(ctx, options)
	if err != nil {
		return err
	}
	for _, body := range bodies {
		if err := batch.AddEventData(&azeventhubs.EventData{Body: []byte(body)}, nil); err != nil {
			return err
		}
	}
	return to.SendEventDataBatch(ctx, batch, nil)
}

func toPartition(id string) *azeventhubs.EventDataBatchOptions {
	return &azeventhubs.EventDataBatchOptions{PartitionID: &id}
}

func byKey(key string) *azeventhubs.EventDataBatchOptions {
	return &azeventhubs.EventDataBatchOptions{PartitionKey: &key}
}

// read opens a partition at a position and returns the first count events.
func read(ctx context.Context, from *azeventhubs.ConsumerClient, id string, start azeventhubs.StartPosition, count int) (list events, err error) {
	partition, err := from.NewPartitionClient(id, &azeventhubs.PartitionClientOptions{StartPosition: start})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, partition.Close(context.Background())) }()
	return receive(ctx, partition, count)
}

func receive(ctx context.Context, partition *azeventhubs.PartitionClient, count int) (events, error) {
	var list events
	for len(list) < count {
		some, err := partition.ReceiveEvents(ctx, count-len(list), nil)
		if err != nil {
			return list, err
		}
		list = append(list, some...)
	}
	return list, nil
}

func earliest() azeventhubs.StartPosition {
	yes := true
	return azeventhubs.StartPosition{Earliest: &yes}
}

func latest() azeventhubs.StartPosition {
	yes := true
	return azeventhubs.StartPosition{Latest: &yes}
}

func afterNumber(number int64) azeventhubs.StartPosition {
	return azeventhubs.StartPosition{SequenceNumber: &number}
}

func lastNumber(ctx context.Context, id string) int64 {
	return must(producer.GetPartitionProperties(ctx, id, nil)).LastEnqueuedSequenceNumber
}
