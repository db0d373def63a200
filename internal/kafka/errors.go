package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Reasons why a request to a cluster fails: values of the label `reason`.
const (
	ReasonUnreachable   = "unreachable"    // no broker, or not the required one
	ReasonNotLeader     = "not_leader"     // the leader of the partition changes
	ReasonReplicas      = "replicas"       // fewer replicas than min.insync.replicas are in sync
	ReasonTimeout       = "timeout"        // the broker did not respond in time
	ReasonUnknownTopic  = "unknown_topic"  // the topic or partition does not exist
	ReasonUnauthorized  = "unauthorized"   // wrong credentials, or missing permissions
	ReasonTooLarge      = "too_large"      // the record exceeds the limit of the broker or topic
	ReasonInvalidRecord = "invalid_record" // the broker refuses the record for another reason
	ReasonThrottled     = "throttled"      // a quota of the cluster is exceeded
	ReasonOther         = "other"
)

// Reasons returns all reasons.
func Reasons() []string {
	return []string{ReasonUnreachable, ReasonNotLeader, ReasonReplicas, ReasonTimeout, ReasonUnknownTopic, ReasonUnauthorized,
		ReasonTooLarge, ReasonInvalidRecord, ReasonThrottled, ReasonOther}
}

// brokerReasons are the reasons for errors that brokers return.
var brokerReasons = map[string][]error{
	ReasonNotLeader: {kerr.LeaderNotAvailable, kerr.NotLeaderForPartition, kerr.ReplicaNotAvailable, kerr.FencedLeaderEpoch,
		kerr.UnknownLeaderEpoch, kerr.NewLeaderElected},
	ReasonReplicas:     {kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend},
	ReasonTimeout:      {kerr.RequestTimedOut},
	ReasonUnknownTopic: {kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InvalidTopicException},
	ReasonUnauthorized: {kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.TransactionalIDAuthorizationFailed},
	ReasonTooLarge:      {kerr.MessageTooLarge, kerr.RecordListTooLarge},
	ReasonInvalidRecord: {kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.CorruptMessage, kerr.UnsupportedForMessageFormat},
	ReasonThrottled:     {kerr.ThrottlingQuotaExceeded},
	ReasonUnreachable:   {kerr.BrokerNotAvailable, kerr.NetworkException},
}

// Reason returns the reason of an error of the client library or of a broker, or "" for nil.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	for reason, errs := range brokerReasons {
		if slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) }) {
			return reason
		}
	}
	var (
		operation   *net.OpError
		name        *net.DNSError
		alert       tls.AlertError
		header      tls.RecordHeaderError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		firstRead   *kgo.ErrFirstReadEOF
	)
	switch {
	case errors.As(err, &operation), errors.As(err, &name), errors.As(err, &alert), errors.As(err, &header),
		errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &firstRead),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return ReasonUnreachable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries):
		return ReasonTimeout
	}
	return ReasonOther
}

// Explain adds advice to err, with the topic and brokers of a configuration.
func (c *ClientConfig) Explain(topic string, err error) error {
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return fmt.Errorf("kafka cluster of %v refuses access to the consumer group; grant READ on the group, and check auth::sasl: %w",
			c.Brokers, err)
	}
	switch Reason(err) {
	case ReasonUnknownTopic:
		return fmt.Errorf("topic %s does not exist in the cluster of %v; create it, or set create_topic of a kafka exporter: %w",
			topic, c.Brokers, err)
	case ReasonUnauthorized:
		return fmt.Errorf("kafka cluster of %v refuses access to topic %s; check auth::sasl and the ACLs of the topic: %w", c.Brokers, topic, err)
	case ReasonReplicas:
		return fmt.Errorf("topic %s has fewer in-sync replicas than min.insync.replicas; check the brokers of %v: %w", topic, c.Brokers, err)
	case ReasonUnreachable:
		return fmt.Errorf("kafka brokers %v are unreachable; check brokers, tls, auth and the network: %w", c.Brokers, err)
	case ReasonTooLarge:
		return fmt.Errorf("topic %s refuses a record of this size; set producer::max_message_bytes to at most its max.message.bytes: %w",
			topic, err)
	}
	return fmt.Errorf("kafka topic %s: %w", topic, err)
}
