package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// explainedShop generates traces of a shop in which something may be wrong.
type explainedShop struct {
	random    *rand.Rand
	cause     string
	traces    ptrace.Traces
	scopes    map[string]ptrace.ScopeSpans // by service and host
	ids       uint64
	durations []time.Duration // of the traces
}

// The causes that can be planted.
const (
	badShard    = "a bad shard"
	slowVersion = "a slow version on one host"
	retryStorm  = "a retry storm"
	lock        = "a lock in one operation"
	dependency  = "a slow dependency without spans"
)

// newExplainedShop returns a shop with traces in the hour before querytest.Noon.
func newExplainedShop(seed uint64, cause string, traces int) *explainedShop {
	s := &explainedShop{random: rand.New(rand.NewPCG(seed, 1)), cause: cause, traces: ptrace.NewTraces()}
	s.scopes = make(map[string]ptrace.ScopeSpans)
	for i := range traces {
		at := querytest.Noon.Add(-time.Hour + time.Duration(i)*time.Hour/time.Duration(traces+1))
		end := s.checkout(at)
		s.durations = append(s.durations, end.Sub(at))
	}
	return s
}

// slowest returns the duration that a share of the traces reaches.
func (s *explainedShop) slowest(share float64) time.Duration {
	sorted := slices.Clone(s.durations)
	slices.Sort(sorted)
	return sorted[int(float64(len(sorted))*(1-share))]
}

// service returns the spans of a service on one of its three hosts. The third one has a newer
// version.
func (s *explainedShop) service(name string, host int) ptrace.ScopeSpans {
	id := fmt.Sprint(name, host)
	if ss, ok := s.scopes[id]; ok {
		return ss
	}
	rs := s.traces.ResourceSpans().AppendEmpty()
	a := rs.Resource().Attributes()
	a.PutStr("service.name", name)
	a.PutStr("host.name", fmt.Sprintf("node-%d", host))
	a.PutStr("k8s.pod.name", fmt.Sprintf("%s-%d", name, host))
	a.PutStr("telemetry.sdk.language", "go")
	a.PutStr("service.version", "2.13.0")
	if host == 2 {
		a.PutStr("service.version", "2.14.0")
	}
	ss := rs.ScopeSpans().AppendEmpty()
	s.scopes[id] = ss
	return ss
}

// place is a span whose children are added.
type place struct {
	span  ptrace.Span
	shop  *explainedShop
	trace pcommon.TraceID
	host  int
	at    time.Time // when the next child begins
}

// call adds a call of an operation: work of about a number of milliseconds before and after what
// the function adds. It returns when the call ends, and moves the time of the caller to it.
func (p *place) call(service, name string, kind ptrace.SpanKind, ms float64, do func(*place)) ptrace.Span {
	s := p.shop
	s.ids++
	own := time.Duration(ms * math.Exp(0.4*s.random.NormFloat64()) * 1e6)
	host := s.random.IntN(3)
	if p.span != (ptrace.Span{}) && kind != ptrace.SpanKindServer {
		host = p.host
	}
	span := s.service(service, host).Spans().AppendEmpty()
	span.SetTraceID(p.trace)
	span.SetSpanID(pcommon.SpanID{byte(s.ids >> 24), byte(s.ids >> 16), byte(s.ids >> 8), byte(s.ids), 1})
	if p.span != (ptrace.Span{}) {
		span.SetParentSpanID(p.span.SpanID())
	}
	span.SetName(name)
	span.SetKind(kind)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(p.at))
	child := &place{span: span, shop: s, trace: p.trace, host: host, at: p.at.Add(own / 2)}
	if do != nil {
		do(child)
	}
	p.at = child.at.Add(own - own/2)
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(p.at))
	return span
}

// wait delays what comes next.
func (p *place) wait(ms float64) {
	p.at = p.at.Add(time.Duration(ms * (0.8 + 0.4*p.shop.random.Float64()) * 1e6))
}

// wrong reports whether a cause is planted, for a share of the calls.
func (p *place) wrong(cause string, share float64) bool {
	return p.shop.cause == cause && p.shop.random.Float64() < share
}

// checkout adds a trace, and returns its end.
func (s *explainedShop) checkout(at time.Time) time.Time {
	s.ids++
	p := &place{shop: s, at: at, trace: pcommon.TraceID{byte(s.ids >> 24), byte(s.ids >> 16), byte(s.ids >> 8), byte(s.ids), 15: 7}}
	root := p.call("frontend", "POST /checkout", ptrace.SpanKindServer, 20, func(p *place) {
		p.call("cart", "GetCart", ptrace.SpanKindServer, 10, func(p *place) {
			p.call("cart", "acquire lock", ptrace.SpanKindInternal, 4, func(p *place) {
				if p.wrong(lock, 0.06) {
					p.wait(500)
				}
			})
			p.call("cart", "HGET", ptrace.SpanKindClient, 6, nil).Attributes().PutStr("db.system.name", "redis")
		})
		p.call("inventory", "Reserve", ptrace.SpanKindServer, 12, func(p *place) {
			if p.host == 2 && p.wrong(slowVersion, 0.4) {
				p.wait(400)
			}
			shard := s.random.IntN(16)
			query := p.call("inventory", "SELECT stock", ptrace.SpanKindClient, 15, func(p *place) {
				if shard == 7 && p.wrong(badShard, 0.8) {
					p.wait(500)
				}
			})
			query.Attributes().PutInt("db.shard", int64(shard))
			query.Attributes().PutStr("db.system.name", "postgresql")
		})
		p.call("payment", "Charge", ptrace.SpanKindServer, 10, p.shop.charge)
		p.call("mail", "Send", ptrace.SpanKindServer, 10, nil)
	})
	a := root.Attributes()
	a.PutStr("user.id", fmt.Sprint("u", s.random.IntN(5000)))
	a.PutStr("user.tier", []string{"free", "gold", "business"}[s.random.IntN(3)])
	a.PutDouble("order.total", math.Round(1000*math.Exp(s.random.NormFloat64()))/100)
	a.PutInt("order.items", int64(1+s.random.IntN(6)))
	a.PutStr("http.request.method", "POST")
	a.PutStr("geo.country", []string{"DE", "FR", "IT", "ES", "PL", "NL", "SE"}[s.random.IntN(7)])
	return p.at
}

// charge adds calls of a provider of payments, which sends no spans.
func (s *explainedShop) charge(p *place) {
	calls := 1
	if p.wrong(retryStorm, 0.07) {
		calls = 4
	}
	for range calls {
		call := p.call("payment", "POST /v1/charges", ptrace.SpanKindClient, 40, func(p *place) {
			if p.wrong(dependency, 0.07) {
				p.wait(600)
			}
		})
		call.Attributes().PutStr("server.address", "api.northpay.example")
	}
}
