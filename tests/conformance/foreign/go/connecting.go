package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

func checkConnecting() {
	check("connects_plain_and_reads_hub_properties", func(ctx context.Context) error {
		properties := must(producer.GetEventHubProperties(ctx, nil))
		if age := time.Since(properties.CreatedOn); age < -time.Minute || age > 10*time.Minute {
			return fmt.Errorf("created on %v", properties.CreatedOn)
		}
		return errors.Join(same(properties.Name, hub), same(properties.PartitionIDs, []string{"0", "1", "2", "3"}))
	})
	check("connects_over_tls", func(ctx context.Context) error {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(must(os.ReadFile(os.Getenv("HUBWEIR_CA_FILE"))))
		// Left alone, this client would look for host:port in the certificate.
		trust := &tls.Config{RootCAs: roots, ServerName: os.Getenv("HUBWEIR_HOST")}
		client := must(azeventhubs.NewProducerClientFromConnectionString(os.Getenv("HUBWEIR_TLS"), hub,
			&azeventhubs.ProducerClientOptions{RetryOptions: retries, TLSConfig: trust}))
		defer client.Close(context.Background())
		return same(must(client.GetEventHubProperties(ctx, nil)).Name, hub)
	})
	check("shared_access_signature_instead_of_a_key", func(ctx context.Context) error {
		client := must(newProducer(os.Getenv("HUBWEIR_TOKEN"), hub))
		defer client.Close(context.Background())
		if err := send(ctx, client, toPartition("1"), "with a signature"); err != nil {
			return err
		}
		return same(must(client.GetEventHubProperties(ctx, nil)).Name, hub)
	})
	check("wrong_key_is_unauthorised", func(ctx context.Context) error {
		client := must(newProducer(os.Getenv("HUBWEIR_WRONG_KEY"), hub))
		defer client.Close(context.Background())
		return refusedWith(azeventhubs.ErrorCodeUnauthorizedAccess, send(ctx, client, nil, "x"))
	})
	check("empty_partition_has_its_properties", func(ctx context.Context) error {
		properties := must(producer.GetPartitionProperties(ctx, "3", nil))
		return errors.Join(
			same(properties.IsEmpty, true),
			same(properties.LastEnqueuedSequenceNumber, -1),
			same(properties.LastEnqueuedOffset, "-1"),
			same(properties.LastEnqueuedOn.Year(), 1))
	})
}
