package doctor

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// checkClickHouse runs the checks of `tracing clickhouse schema check` for each exporter.
func checkClickHouse(ctx context.Context, x *examination) []Finding {
	var found []Finding
	for _, c := range x.used {
		if config, ok := c.Value.(*clickhouse.Config); ok {
			found = append(found, checkTables(ctx, key(c), config)...)
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no exporter of the type clickhouse in the configuration"))
	}
	return found
}

func checkTables(ctx context.Context, subject string, config *clickhouse.Config) []Finding {
	const unreachable = "start the server, and correct endpoints, username, password and tls of the exporter"
	tables, err := clickhouse.OpenTables(config)
	if err != nil {
		return []Finding{newFinding(subject, Problem, "%v", err).advise(unreachable)}
	}
	defer tables.Close() //nolint:errcheck // was read only
	differences, err := tables.Check(ctx, tables.Server)
	if err != nil {
		return []Finding{newFinding(subject, Problem, "%v", err).advise(unreachable)}
	}
	var found []Finding
	for _, d := range differences {
		v := Warning
		if d.Problem {
			v = Problem
		}
		found = append(found, newFinding(subject, v, "%s", d.Text))
	}
	if len(found) == 0 {
		found = append(found, newFinding(subject, OK, "tables have version %d and the settings of the server suit", tables.Version))
	}
	return found
}

// checkKafka connects to the brokers of each receiver and exporter and looks at their topics.
func checkKafka(ctx context.Context, x *examination) []Finding {
	var found []Finding
	for _, c := range x.used {
		if config := kafkaOf(c); config != nil {
			found = append(found, x.checkCluster(ctx, c, *config)...)
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no receiver or exporter of the type kafka in the configuration"))
	}
	return found
}

// kafkaOf returns the connection of a component to a Kafka cluster, or nil.
func kafkaOf(c *app.Component) (config *kafka.ClientConfig) {
	c.Walk(func(_ []string, field any, _ reflect.StructTag) {
		if f, ok := field.(*kafka.ClientConfig); ok {
			config = f
		}
	})
	return config
}

// checkCluster examines the parts of a cluster that a component uses.
func (x *examination) checkCluster(ctx context.Context, c *app.Component, config kafka.ClientConfig) []Finding {
	subject := key(c) + " (" + strings.Join(config.Brokers, ", ") + ")"
	connection, err := kafka.NewConnection(x.settings(), config)
	if err == nil {
		err = connection.Load(ctx)
	}
	if err != nil {
		return []Finding{newFinding(subject, Problem, "cannot use the settings: %v", err).advise("correct auth and tls of the component")}
	}
	defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // was read only
	client, err := kgo.NewClient(connection.Options()...)
	if err != nil {
		return []Finding{newFinding(subject, Problem, "cannot use the settings: %v", err).advise("correct the block of the component")}
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	metadata, err := admin.Metadata(ctx, text(c, "topic"))
	if err != nil {
		return []Finding{newFinding(subject, Problem, "no broker responds: %v", err).
			advise("start the brokers, and correct brokers, auth and tls of the component")}
	}
	return append([]Finding{newFinding(subject, OK, "%d brokers respond", len(metadata.Brokers))},
		x.checkTopic(ctx, c, admin, metadata.Topics[text(c, "topic")])...)
}

// checkTopic examines the partitions of a topic, and whether the loss of one broker loses spans.
func (x *examination) checkTopic(ctx context.Context, c *app.Component, admin *kadm.Client, topic kadm.TopicDetail) []Finding {
	subject := key(c) + " topic " + text(c, "topic")
	switch {
	case errors.Is(topic.Err, kerr.UnknownTopicOrPartition) && hasBlock(c, "create_topic"):
		return []Finding{newFinding(subject, OK, "does not exist; create_topic creates it")}
	case errors.Is(topic.Err, kerr.UnknownTopicOrPartition):
		return []Finding{newFinding(subject, Problem, "does not exist").advise("create the topic, or set create_topic of the exporter")}
	case topic.Err != nil:
		return []Finding{newFinding(subject, Problem, "%v", topic.Err).advise("grant the user of the component rights on the topic")}
	}
	replicas, leaderless := topic.Partitions.NumReplicas(), 0
	for _, p := range topic.Partitions {
		if p.Leader < 0 {
			leaderless++
		}
	}
	if leaderless > 0 {
		return []Finding{newFinding(subject, Problem, "%d of %d partitions have no leader", leaderless, len(topic.Partitions)).
			advise("start the brokers that have these partitions")}
	}
	f := newFinding(subject, OK, "%d partitions with %d replicas", len(topic.Partitions), replicas)
	if c.Key.Kind == pipeline.KindExporter {
		f = judgeReplicas(ctx, admin, topic.Topic, replicas, f)
	}
	return []Finding{f}
}

// judgeReplicas says whether the loss of a broker loses acknowledged records or stops writing.
func judgeReplicas(ctx context.Context, admin *kadm.Client, topic string, replicas int, f Finding) Finding {
	limits, err := kafka.ReadTopicLimits(ctx, admin, topic)
	if err == nil && limits.MinInSync > 0 {
		f.Found += ", min.insync.replicas " + strconv.Itoa(limits.MinInSync)
	}
	if advice := limits.Advise(replicas); advice != "" {
		f.Verdict = Warning
		return f.advise("%s", advice)
	}
	return f
}

// hasBlock reports whether a component has an optional block.
func hasBlock(c *app.Component, name string) (on bool) {
	c.Walk(func(path []string, _ any, _ reflect.StructTag) {
		on = on || len(path) > 1 && path[0] == name
	})
	return on
}
