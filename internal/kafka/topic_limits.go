package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Settings of topics.
const (
	minInSyncReplicas = "min.insync.replicas"
	maxMessageBytes   = "max.message.bytes"
)

// TopicLimits are settings of a topic that limit writes. 0 means unknown.
type TopicLimits struct {
	MinInSync       int // number of replicas that must store a record before it is acknowledged
	MaxMessageBytes int // maximum size of a record batch
}

// ReadTopicLimits reads the limits of a topic. It needs the permission DESCRIBE_CONFIGS.
func ReadTopicLimits(ctx context.Context, admin *kadm.Client, topic string) (TopicLimits, error) {
	all, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return TopicLimits{}, err
	}
	settings, err := all.On(topic, nil)
	if err == nil {
		err = settings.Err
	}
	var limits TopicLimits
	for _, s := range settings.Configs {
		switch n, _ := strconv.Atoi(s.MaybeValue()); s.Key {
		case minInSyncReplicas:
			limits.MinInSync = n
		case maxMessageBytes:
			limits.MaxMessageBytes = n
		}
	}
	return limits, err
}

// Advise says how to change a topic with a number of replicas so that the failure of a broker
// neither loses acknowledged records nor stops writes. It returns "" if nothing needs to change.
func (l TopicLimits) Advise(replicas int) string {
	switch {
	case replicas < 2:
		return "create the topic with three replicas: the loss of a broker loses acknowledged spans"
	case l.MinInSync == 0:
		return ""
	case replicas == 2:
		return "create the topic with three replicas: with two, the loss of a broker loses acknowledged spans or stops writing"
	case l.MinInSync < 2:
		return fmt.Sprintf("set %s of the topic to %d: acknowledged spans may be on one broker only", minInSyncReplicas, replicas-1)
	case l.MinInSync >= replicas:
		return fmt.Sprintf("set %s of the topic below the number of replicas: nothing can be written while one broker is down",
			minInSyncReplicas)
	}
	return ""
}
