package storequery

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// AttributeHistory is implemented by stores that can tell when services had attributes without
// reading spans.
type AttributeHistory interface {
	// EachAttribute calls take with the attributes of the spans that start between two times, and
	// of other spans in the first and last hour. It returns false, without calling take, if the
	// store cannot tell.
	EachAttribute(ctx context.Context, tenant string, from, to time.Time, take func(*AttributeTime) error) (
		known bool, missing tracestore.Reasons, err error)
}

// AttributeTime says when spans of a service had an attribute, within an hour.
type AttributeTime struct {
	Service     string
	Field       tracestore.Field // attribute of spans or resources
	Value       string           // of a resource attribute with one of the IdentityKeys, if known; otherwise ""
	Spans       uint64
	First, Last uint64 // starts of the first and the last of the spans
}

// VersionKey is the resource attribute with the version of a service.
const VersionKey = "service.version"

// InstanceKeys are the resource attributes that identify instances of a service. The first one that
// a resource has is used.
func InstanceKeys() []string { return []string{"service.instance.id", "k8s.pod.name", "host.name"} }

// IdentityKeys are the resource attributes whose values an AttributeHistory has, if they are texts
// or integers.
func IdentityKeys() []string { return append(InstanceKeys(), VersionKey) }
