package spanmetrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

type remoteWriteConfig struct {
	client.HTTPConfig
	Labels     map[string]string `yaml:"labels" doc:"Labels of all series besides job, which is the name of the extension. Two extensions must not send series with the same labels."`
	MaxSamples int               `yaml:"max_samples_per_send" doc:"Maximum number of samples in a request."`
}

func defaultRemoteWrite() remoteWriteConfig {
	c := remoteWriteConfig{HTTPConfig: client.DefaultHTTPConfig(), MaxSamples: 2000}
	c.Compression = "snappy"
	return c
}

// Validate checks the values of the configuration.
func (c *remoteWriteConfig) Validate() error {
	var errs []error
	if c.Endpoint == "" {
		errs = append(errs, pipeline.BadKey("endpoint", "must be set; write a URL, for example http://localhost:9090/api/v1/write"))
	}
	if c.Compression != "snappy" {
		errs = append(errs, pipeline.BadKey("compression", "must be snappy, which the protocol prescribes"))
	}
	if c.MaxSamples < 1 {
		errs = append(errs, pipeline.BadKey("max_samples_per_send", "must be above 0, not %d", c.MaxSamples))
	}
	for name := range c.Labels {
		switch {
		case !labelNames.MatchString(name):
			errs = append(errs, pipeline.BadKey("labels", "%q is not the name of a label", name))
		case strings.HasPrefix(name, "__") || slices.Contains(ownLabels, name):
			errs = append(errs, pipeline.BadKey("labels", "%q is set by the extension", name))
		}
	}
	return errors.Join(errs...)
}

// remoteWriter sends samples in the Prometheus remote write protocol 1.0
// (https://prometheus.io/docs/specs/prw/remote_write_spec/). It is for one goroutine.
type remoteWriter struct {
	client  *client.HTTP
	cfg     remoteWriteConfig
	name    string // endpoint without its query, which may contain a secret
	labels  map[string]string
	samples *prometheus.CounterVec
}

func newRemoteWriter(set pipeline.Settings, c remoteWriteConfig) (*remoteWriter, error) {
	h, err := client.NewHTTP(set, c.HTTPConfig)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(c.Endpoint, "?")
	w := &remoteWriter{client: h, cfg: c, name: name,
		samples: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_span_metrics_remote_write_samples_total",
			Help: "Samples of span metrics by what became of them: sent, rejected by the server, or failed. " +
				"The next interval repeats all counters, so that nothing is lost."}, []string{"result"})}
	w.labels = map[string]string{"job": set.ID.String()}
	maps.Copy(w.labels, c.Labels)
	return w, set.Metrics.Register(w.samples)
}

// write sends the series as of a time. It ends when a request fails; what the server rejects does
// not keep back the rest. Nothing is repeated: the samples of the next interval include it.
// Prometheus ignores exemplars that it already has.
func (w *remoteWriter) write(ctx context.Context, series prometheus.Gatherer, at time.Time) error {
	families, err := series.Gather()
	if err != nil {
		return fmt.Errorf("remote write: %w", err)
	}
	r := request{labels: w.labels, at: at.UnixMilli()}
	var rejected error // the first one
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, series := range r.metric(f, m) {
				if r.samples == w.cfg.MaxSamples {
					refusal, err := w.send(ctx, &r)
					if err != nil {
						return err
					}
					rejected = cmp.Or(rejected, refusal)
				}
				r.body = appendMessage(r.body, 1, series)
				r.samples++
			}
		}
	}
	if r.samples > 0 {
		refusal, err := w.send(ctx, &r)
		return cmp.Or(err, rejected, refusal)
	}
	return rejected
}

// send sends a request and empties it. refusal says why the server rejected it.
func (w *remoteWriter) send(ctx context.Context, r *request) (refusal, err error) {
	resp, err := w.client.Post(ctx, w.cfg.Endpoint, http.Header{"Content-Type": {"application/x-protobuf"},
		"X-Prometheus-Remote-Write-Version": {"0.1.0"}}, [][]byte{r.body})
	result := "sent"
	switch {
	case err != nil:
		result, err = "failed", fmt.Errorf("remote write to %s: %w", w.name, err)
	case resp.Status/100 != 2:
		result, err = "failed", fmt.Errorf("remote write to %s: %d %s: %.200s", w.name, resp.Status, http.StatusText(resp.Status),
			strings.TrimSpace(string(resp.Body)))
		if resp.Status/100 == 4 && resp.Status != http.StatusTooManyRequests {
			result, refusal, err = "rejected", err, nil
		}
	}
	w.samples.WithLabelValues(result).Add(float64(r.samples))
	r.body, r.samples = r.body[:0], 0
	return refusal, err
}

// request is a WriteRequest in protobuf.
type request struct {
	labels  map[string]string
	at      int64 // milliseconds since the Unix epoch
	body    []byte
	samples int
}

// metric returns the series of a counter or histogram, each with one sample.
func (r *request) metric(f *dto.MetricFamily, m *dto.Metric) [][]byte {
	if c := m.GetCounter(); c != nil {
		return [][]byte{r.series(f.GetName(), m, "", c.GetValue(), nil)}
	}
	h := m.GetHistogram()
	var all [][]byte
	infinite := false // only a bucket with an exemplar is written out
	for _, b := range h.GetBucket() {
		infinite = infinite || math.IsInf(b.GetUpperBound(), 1)
		all = append(all, r.series(f.GetName()+"_bucket", m, bound(b.GetUpperBound()), float64(b.GetCumulativeCount()), b.GetExemplar()))
	}
	if !infinite {
		all = append(all, r.series(f.GetName()+"_bucket", m, "+Inf", float64(h.GetSampleCount()), nil))
	}
	return append(all, r.series(f.GetName()+"_sum", m, "", h.GetSampleSum(), nil),
		r.series(f.GetName()+"_count", m, "", float64(h.GetSampleCount()), nil))
}

// bound returns the label of a bucket as OpenMetrics writes it: 2.0, +Inf.
func bound(le float64) string {
	text := strconv.FormatFloat(le, 'g', -1, 64)
	if !strings.ContainsAny(text, "e.If") {
		text += ".0"
	}
	return text
}

// series returns a series with one sample. le is the label of a bucket or "".
func (r *request) series(name string, m *dto.Metric, le string, value float64, x *dto.Exemplar) []byte {
	labels := maps.Clone(r.labels)
	labels["__name__"] = name
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if le != "" {
		labels["le"] = le
	}
	series := appendLabels(nil, labels)
	series = appendMessage(series, 2, appendSample(nil, 1, value, r.at))
	if x != nil {
		of := map[string]string{}
		for _, l := range x.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		series = appendMessage(series, 3, appendSample(appendLabels(nil, of), 2, x.GetValue(), x.GetTimestamp().AsTime().UnixMilli()))
	}
	return series
}

// appendLabels appends the labels that have a value as field 1, sorted by name as the protocol
// requires.
func appendLabels(dst []byte, labels map[string]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if labels[name] == "" {
			continue
		}
		l := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
		l = protowire.AppendString(protowire.AppendTag(l, 2, protowire.BytesType), labels[name])
		dst = appendMessage(dst, 1, l)
	}
	return dst
}

// appendSample appends a value as the given field, and its time in milliseconds as the next one.
func appendSample(dst []byte, field protowire.Number, value float64, at int64) []byte {
	dst = protowire.AppendFixed64(protowire.AppendTag(dst, field, protowire.Fixed64Type), math.Float64bits(value))
	return protowire.AppendVarint(protowire.AppendTag(dst, field+1, protowire.VarintType), uint64(at))
}

func appendMessage(dst []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), message)
}
