// Package replay implements the command `tracing kafka replay`, which makes ingesters reread
// records of a Kafka topic.
package replay

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/commands"
	kafkareceiver "github.com/tracing-backend/tracing/receivers/kafka"
)

// Commands returns the commands.
func Commands() []commands.Command {
	return []commands.Command{{
		Name: "kafka replay", Args: "[PRESET] [flags] --from TIME [--dry-run] [--receiver ID]", Group: "span stores",
		Configured: true, Preset: "ingester",
		Doc: "make the consumer group of the kafka receiver reread the records since a time; " +
			"uses the preset ingester unless PRESET or --config is given",
		Examples: []string{"tracing kafka replay ingester --config my.yaml --from 2h --dry-run",
			"tracing kafka replay ingester --config my.yaml --from 2026-11-21T17:00:00Z"},
		Setup: setup,
	}}
}

// requestTimeout is the maximum time for all requests to the brokers.
const requestTimeout = time.Minute

func setup(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
	from := fs.String("from", "", "Time from which records are reread: 2026-11-21T17:00:00Z, or 30m, 2h or 7d for a time before now.")
	dryRun := fs.Bool("dry-run", false, "Only show what would be reread.")
	receiver := fs.String("receiver", "", "ID of the receiver if the configuration has several, such as kafka/archive.")
	return func(ctx context.Context, in commands.Invocation) error {
		config, ok := in.Configuration.(*app.Config)
		if !ok {
			return errors.New("configuration is not the one of this program")
		}
		c, err := choose(config, *receiver)
		if err != nil {
			return err
		}
		r := &replay{topic: c.Topic, group: c.GroupID, dryRun: *dryRun, out: in.Stdout, messages: in.Stderr}
		now := time.Now()
		if r.from, err = parseTime("from", *from, now); err != nil {
			return err
		}
		r.limits = limitsOf(config, now.Sub(r.from))
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return withAdmin(ctx, c.ClientConfig, in, r.run)
	}
}

// parseTime parses a time in RFC 3339 format, or a duration before now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	var ago pipeline.Duration
	if ago.UnmarshalText([]byte(text)) != nil || ago <= 0 {
		return time.Time{}, commands.BadUsage("--%s: %q is not a time; use 2026-11-21T17:00:00Z, or 30m, 2h or 7d for a time before now",
			flag, text)
	}
	return now.Add(-ago.Std()), nil
}

// choose returns the configuration of the receiver with an id, or of the only receiver if the id is
// "".
func choose(c *app.Config, receiver string) (*kafkareceiver.Config, error) {
	var ids []string
	var chosen *kafkareceiver.Config
	for _, component := range c.Sorted() {
		value, ok := component.Value.(*kafkareceiver.Config)
		id := component.Key.ID.String()
		if !ok || receiver != "" && id != receiver {
			continue
		}
		ids, chosen = append(ids, id), value
	}
	switch {
	case len(ids) == 1:
		return chosen, nil
	case len(ids) > 1:
		return nil, commands.BadUsage("configuration has the receivers %s; name one with --receiver", strings.Join(ids, ", "))
	case receiver != "":
		return nil, commands.BadUsage("configuration has no receiver %q of the type kafka", receiver)
	}
	return nil, commands.BadUsage("configuration has no receiver of the type kafka")
}

// withAdmin calls f with an admin client for the cluster.
func withAdmin(ctx context.Context, c kafka.ClientConfig, in commands.Invocation, f func(context.Context, *kadm.Client) error) error {
	connection, err := kafka.NewConnection(pipeline.Settings{ID: pipeline.ID{Type: "replay"}, Logger: zap.NewNop(),
		Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(), Report: func(error) {}}, c)
	if err != nil {
		return err
	}
	if err := connection.Load(ctx); err != nil {
		return err
	}
	client, err := kgo.NewClient(connection.Options()...)
	if err == nil {
		err = f(ctx, kadm.NewClient(client))
		client.Close()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no response from the brokers %s within %s: %w", strings.Join(c.Brokers, ", "), requestTimeout, err)
	}
	return errors.Join(err, connection.Close(context.WithoutCancel(ctx)))
}
