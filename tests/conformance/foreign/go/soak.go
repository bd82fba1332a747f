package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

// The client over many minutes: what tests/conformance/soak/task.py says, in Go.

const (
	soakEvery = 5 * time.Second
	// An operation of the client that takes longer waits without end.
	soakStep = 90 * time.Second
)

var soakEnds time.Time

// credential makes tokens when the client wants one, and counts.
type credential struct{ made atomic.Int32 }

func (c *credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.made.Add(1)
	seconds := must(strconv.Atoi(os.Getenv("HUBWEIR_TOKEN_S")))
	expires := time.Now().Add(time.Duration(seconds) * time.Second)
	resource := url.QueryEscape("sb://" + os.Getenv("HUBWEIR_HOST") + "/" + hub)
	mac := hmac.New(sha256.New, []byte(os.Getenv("HUBWEIR_KEY")))
	fmt.Fprintf(mac, "%s\n%d", resource, expires.Unix())
	signed := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	token := fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s",
		resource, signed, expires.Unix(), os.Getenv("HUBWEIR_RULE"))
	return azcore.AccessToken{Token: token, ExpiresOn: expires}, nil
}

func soak() {
	seconds := must(strconv.Atoi(os.Getenv("HUBWEIR_SOAK_S")))
	soakEnds = time.Now().Add(time.Duration(seconds) * time.Second)
	var all sync.WaitGroup
	for name, body := range map[string]func() error{
		"key_busy":       func() error { return soakBusy("key", "0") },
		"key_idle":       func() error { return soakIdle("key", "1") },
		"token_busy":     func() error { return soakBusy("token", "2") },
		"token_idle":     func() error { return soakIdle("token", "3") },
		"tokens_renewed": soakRenewed,
	} {
		all.Add(1)
		go func() {
			defer all.Done()
			began := time.Now()
			err := guarded(body)
			detail := ""
			if err != nil {
				detail = fmt.Sprintf("after %.1f min: %v", time.Since(began).Minutes(), err)
			}
			say(map[string]any{"check": name, "ok": err == nil, "detail": detail})
		}()
	}
	all.Wait()
}

func guarded(body func() error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v", problem)
		}
	}()
	return body()
}

// soakClients are made with default settings; over TLS with the development CA.
func soakClients(way string, made *credential) (*azeventhubs.ProducerClient, *azeventhubs.ConsumerClient) {
	group := azeventhubs.DefaultConsumerGroup
	if way == "key" {
		return must(azeventhubs.NewProducerClientFromConnectionString(plain, hub, nil)),
			must(azeventhubs.NewConsumerClientFromConnectionString(plain, hub, group, nil))
	}
	host := os.Getenv("HUBWEIR_HOST")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(os.Getenv("HUBWEIR_CA_FILE"))))
	trust := &tls.Config{RootCAs: roots, ServerName: host}
	return must(azeventhubs.NewProducerClient(host, hub, made, &azeventhubs.ProducerClientOptions{TLSConfig: trust})),
		must(azeventhubs.NewConsumerClient(host, hub, group, made, &azeventhubs.ConsumerClientOptions{TLSConfig: trust}))
}

func soakStepped(name string, body func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), soakStep)
	defer cancel()
	if err := body(ctx); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
}

func soakSend(to *azeventhubs.ProducerClient, partition, body string) {
	soakStepped("send", func(ctx context.Context) error { return send(ctx, to, toPartition(partition), body) })
}

func soakReceive(from *azeventhubs.PartitionClient, body string) {
	soakStepped("receive", func(ctx context.Context) error {
		got, err := receive(ctx, from, 1)
		if err != nil {
			return err
		}
		return same(strings.Join(got.bodies(), ","), body)
	})
}

func soakBusy(way, partition string) error {
	to, from := soakClients(way, &credential{})
	reader := must(from.NewPartitionClient(partition, &azeventhubs.PartitionClientOptions{StartPosition: earliest()}))
	for sent := 0; time.Now().Before(soakEnds); sent++ {
		body := fmt.Sprintf("event %d", sent)
		soakSend(to, partition, body)
		soakReceive(reader, body)
		if sent%12 == 11 {
			soakStepped("read the partition's properties", func(ctx context.Context) error {
				_, err := to.GetPartitionProperties(ctx, partition, nil)
				return err
			})
		}
		time.Sleep(soakEvery)
	}
	return nil
}

func soakIdle(way, partition string) error {
	to, from := soakClients(way, &credential{})
	reader := must(from.NewPartitionClient(partition, &azeventhubs.PartitionClientOptions{StartPosition: earliest()}))
	for _, body := range []string{"first", "last"} {
		soakStepped("read the hub's properties, "+body, func(ctx context.Context) error {
			_, err := to.GetEventHubProperties(ctx, nil)
			return err
		})
		soakSend(to, partition, body)
		soakReceive(reader, body)
		time.Sleep(time.Until(soakEnds))
	}
	return nil
}

// soakRenewed: nobody else uses this credential, and a reader's link asks for tokens as long as it stands.
func soakRenewed() error {
	made := &credential{}
	_, from := soakClients("token", made)
	reader := must(from.NewPartitionClient("3", &azeventhubs.PartitionClientOptions{StartPosition: earliest()}))
	soakReceive(reader, "first")
	time.Sleep(time.Until(soakEnds))
	if made.made.Load() < 3 {
		return fmt.Errorf("%d tokens were made", made.made.Load())
	}
	soakReceive(reader, "last")
	return nil
}
