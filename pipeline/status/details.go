package status

import (
	"context"
	"time"
)

// Details is the state of a process for operators: its components, the received spans, and their
// outcomes. It covers all tenants together. Counters start with the process. In JSON, times are in
// RFC 3339 format and durations in nanoseconds.
type Details struct {
	Process  string    `json:"process"` // name of the host
	Build    Build     `json:"build"`
	Now      time.Time `json:"now"`
	Since    time.Time `json:"since"` // start of the process
	Report   Report    `json:"report"`
	Intake   Intake    `json:"intake"`
	Accounts []Account `json:"accounts"` // receivers first
	Balances []Balance `json:"balances"` // one for each group of pipelines that share components
	Queues   []Queue   `json:"queues"`
	Stores   []Store   `json:"stores"`
	Limits   []Limit   `json:"limits"`
	// Configuration is the running configuration as YAML, without secrets and without values of
	// environment variables and files.
	Configuration string `json:"configuration,omitempty"`
}

// Account counts the spans of one component by outcome. Once nothing is in progress, In is the sum
// of the other counters.
type Account struct {
	Component string    `json:"component"`
	Signal    string    `json:"signal,omitempty"` // `logs` if it counts log records instead of spans
	Kind      string    `json:"kind"`
	In        int64     `json:"in"`       // offered
	Accepted  int64     `json:"accepted"` // receivers: acknowledged
	Sent      int64     `json:"sent"`     // passed on, stored, or accepted by the next hop
	Refused   int64     `json:"refused"`
	Dropped   int64     `json:"dropped"`
	Lost      int64     `json:"lost"` // the part of Dropped that was not dropped on purpose
	Queued    int64     `json:"queued"`
	Held      int64     `json:"held"`
	Reasons   []Outcome `json:"reasons"`            // of Refused and Dropped, the most frequent first
	Branches  []Branch  `json:"branches,omitempty"` // of a connector
}

// Branch counts the spans that a connector passed to a pipeline.
type Branch struct {
	Pipeline string `json:"pipeline"`
	Accepted int64  `json:"accepted"`
	Refused  int64  `json:"refused"`
}

// Outcome is why spans were refused or dropped.
type Outcome struct {
	Outcome string `json:"outcome"` // `refused` or `dropped`
	Reason  string `json:"reason"`
	Spans   int64  `json:"spans"`
}

// Queue is the sending queue of an exporter.
type Queue struct {
	Component string        `json:"component"`
	Signal    string        `json:"signal,omitempty"` // `logs` if it holds log records instead of spans
	Storage   string        `json:"storage"`          // `memory` or `disk`
	Overflow  string        `json:"overflow"`
	Spans     int64         `json:"spans"`
	Bytes     int64         `json:"bytes"`
	MaxBytes  int64         `json:"maxBytes"`
	Size      int64         `json:"size"`    // in units of Sizer
	MaxSize   int64         `json:"maxSize"` // 0: not limited
	Sizer     string        `json:"sizer"`
	Waiting   int           `json:"waiting"` // batches
	Age       time.Duration `json:"age"`     // of the oldest waiting batch, 0 if none waits
}

// StoreReporter is implemented by exporters that store spans.
type StoreReporter interface {
	// StoreStatus returns the content of the store for all tenants together. It reads no spans.
	StoreStatus(ctx context.Context) (Store, error)
}

// Store describes what a store holds.
type Store struct {
	Component   string        `json:"component"` // set by the framework
	Place       string        `json:"place,omitempty"`
	Spans       int64         `json:"spans"`
	Bytes       int64         `json:"bytes"`
	MaxBytes    int64         `json:"maxBytes"`       // 0: not limited
	Retention   time.Duration `json:"retention"`      // 0: not limited
	Free        int64         `json:"free,omitempty"` // bytes of the disk, 0 if unknown
	Segments    int           `json:"segments"`
	Quarantined int           `json:"quarantined"`
	LogBytes    int64         `json:"logBytes"`             // write-ahead log
	Oldest      time.Time     `json:"oldest,omitzero"`      // first arrival
	OldestStart time.Time     `json:"oldestStart,omitzero"` // start of the oldest span, as set by the client
	// Parts are the arrivals of stored spans in MaxParts equal parts from Oldest to now.
	Parts []Part `json:"parts"`
	// Gaps are the longest MaxGaps periods without arrivals, of at least MinGap each, in order of
	// time.
	Gaps []Gap `json:"gaps"`
	// Expiring is what retention will delete within the next hour and the next day, if the size
	// limit deletes nothing before.
	Expiring []Expiry `json:"expiring"`
	Problem  string   `json:"problem,omitempty"` // why the status is unknown
}

// Limits of a [Store].
const (
	MaxParts = 56
	MaxGaps  = 10
	MinGap   = 15 * time.Minute
)

// Part counts the spans that arrived in one of several equal parts of the time, beginning at Start.
type Part struct {
	Start time.Time `json:"start"`
	Spans int64     `json:"spans"`
}

// Gap is a time without arrivals.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Expiry is what retention will delete within a period.
type Expiry struct {
	Within time.Duration `json:"within"`
	Spans  int64         `json:"spans"`
	Bytes  int64         `json:"bytes"`
}

// Limit is a limit of the process that is in use.
type Limit struct {
	Key  string `json:"key"` // of the configuration
	Used int64  `json:"used"`
	Peak int64  `json:"peak"`
	Max  int64  `json:"max"` // bytes
}
