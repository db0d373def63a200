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

// explainedWorld generates traces of several root operations, in which inputs are related to each
// other, most attributes do not matter, and failures leave traces of their own: error types,
// statuses, retries, calls that are made only after them, and calls that are no longer made.
type explainedWorld struct {
	random    *rand.Rand
	causes    []plantedCause
	slow      bool // the causes make requests slow instead of failed
	traces    ptrace.Traces
	scopes    map[string]ptrace.ScopeSpans // by service and instance
	ids       uint64
	durations []time.Duration // of the traces
}

// plantedCause is an input with which calls of an operation fail or are slow.
type plantedCause struct {
	kind         string
	field, value string  // as in the response; value is "" for numbers
	service      string  // of the operation
	operation    string  // that is affected
	share        float64 // of the calls with the input that are affected
	storm        bool    // affected calls are repeated
	met          func(*worldCall) bool
}

// worldRequest is what a request of a user brings along.
type worldRequest struct {
	inputs map[string]string
	items  int
}

// worldCall is a call of an operation.
type worldCall struct {
	world    *explainedWorld
	request  *worldRequest
	service  string
	instance int
	span     ptrace.Span
	trace    pcommon.TraceID
	at       time.Time
	inputs   map[string]string // attributes of this span
	failed   bool
}

const worldInstances = 4

// plantedKinds are the kinds of causes.
func plantedKinds() []string {
	return []string{"version", "flag", "host", "region", "tenant", "provider", "cart size", "shard", "query", "retry storm", "two causes"}
}

// newExplainedWorld returns a world with a cause of a kind; "" for none.
func newExplainedWorld(seed uint64, kind string, slow bool, traces int) *explainedWorld {
	w := &explainedWorld{random: rand.New(rand.NewPCG(seed, 36)), slow: slow, traces: ptrace.NewTraces()}
	w.scopes = make(map[string]ptrace.ScopeSpans)
	w.plant(kind)
	for i := range traces {
		at := querytest.Noon.Add(-time.Hour + time.Duration(i)*time.Hour/time.Duration(traces+1))
		w.durations = append(w.durations, w.visit(at).Sub(at))
	}
	return w
}

func (w *explainedWorld) plant(kind string) {
	instance := w.random.IntN(worldInstances)
	attribute := func(kind, key, value, service, operation string) plantedCause {
		return plantedCause{kind: kind, field: "span." + key, value: value, service: service, operation: operation,
			met: func(c *worldCall) bool { return c.inputs[key] == value || c.request.inputs[key] == value }}
	}
	c := plantedCause{kind: kind}
	switch kind {
	case "":
		return
	case "version":
		c.field, c.value, c.service, c.operation = "resource.service.version", "2.14.0", "payment", "POST /charges"
		c.met = func(c *worldCall) bool { return versionOf(c.service, c.instance) == "2.14.0" }
	case "flag":
		c = attribute(kind, "feature_flag.result.variant", "on", "payment", "POST /charges")
	case "host", "retry storm":
		c.field, c.value, c.service, c.operation = "resource.host.name", hostOf("inventory", instance), "inventory", "Inventory/Reserve"
		c.met = func(c *worldCall) bool { return c.instance == instance }
		c.storm = kind == "retry storm"
	case "region":
		c = attribute(kind, "cloud.region", "eu-west", "cart", "Cart/Get")
	case "tenant":
		c = attribute(kind, "tenant.id", "globex", "cart", "Cart/Get")
	case "provider":
		c = attribute(kind, "payment.provider", "nova", "payment", "POST /charges")
	case "cart size":
		c.field, c.service, c.operation = "span.cart.items", "cart", "Cart/Get"
		c.met = func(c *worldCall) bool { return c.request.items >= 12 }
	case "shard":
		c = attribute(kind, "db.shard", fmt.Sprint(w.random.IntN(8)), "inventory", "SELECT stock")
	case "query":
		c = attribute(kind, "db.query.text", "SELECT * FROM stock WHERE reserved ORDER BY age", "inventory", "SELECT stock")
	case "two causes":
		w.plant("version")
		w.plant("tenant")
		return
	}
	c.share = 0.35 + 0.6*w.random.Float64()
	w.causes = append(w.causes, c)
}

func versionOf(service string, instance int) string {
	switch {
	case service == "payment" && instance%2 == 1:
		return "2.14.0"
	case service == "cart" && instance == 0: // a new version that is not to blame
		return "1.9.3"
	}
	return "1.9.2"
}

func hostOf(service string, instance int) string { return fmt.Sprintf("node-%s-%d", service, instance) }

// slowest returns the duration that a share of the traces reaches.
func (w *explainedWorld) slowest(share float64) time.Duration {
	sorted := slices.Clone(w.durations)
	slices.Sort(sorted)
	return sorted[len(sorted)-int(math.Ceil(share*float64(len(sorted))))]
}

func (w *explainedWorld) pick(weights ...float64) int {
	at := w.random.Float64()
	for i, weight := range weights {
		if at -= weight; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

func (w *explainedWorld) chance(p float64) bool { return w.random.Float64() < p }

// visit adds the trace of a request, and returns its end.
func (w *explainedWorld) visit(at time.Time) time.Time {
	w.ids++
	r := &worldRequest{inputs: map[string]string{}, items: 1 + int(w.random.ExpFloat64()*5)}
	op := w.pick(0.3, 0.3, 0.15, 0.25)
	// Some operations have more requests of some tenants, and these more of some regions and plans.
	tenant := w.pick([][]float64{{0.5, 0.3, 0.1, 0.1}, {0.5, 0.3, 0.1, 0.1}, {0.3, 0.3, 0.2, 0.2}, {0.3, 0.3, 0.2, 0.2}}[op]...)
	r.inputs["tenant.id"] = []string{"acme", "initech", "globex", "umbrella"}[tenant]
	r.inputs["user.plan"] = []string{"free", "gold"}[w.pick(0.7, 0.3)]
	if tenant == 2 && w.chance(0.7) {
		r.inputs["user.plan"] = "enterprise"
	}
	r.inputs["cloud.region"] = []string{"eu-west", "us-east", "us-west"}[w.pick(
		[][]float64{{0.3, 0.4, 0.3}, {0.2, 0.4, 0.4}, {0.5, 0.3, 0.2}, {0.3, 0.3, 0.4}}[tenant]...)]
	r.inputs["client.version"] = []string{"7.1", "7.2", "8.0"}[w.pick(0.4, 0.4, 0.2)]
	r.inputs["geo.country"] = []string{"DE", "FR", "IT", "US", "CA"}[w.random.IntN(5)]
	trace := pcommon.TraceID{byte(w.ids >> 24), byte(w.ids >> 16), byte(w.ids >> 8), byte(w.ids), 15: 7}
	root := &worldCall{world: w, request: r, at: at, trace: trace}
	method, route := []string{"GET", "GET", "POST", "POST"}[op], []string{"/", "/products/{id}", "/cart", "/checkout"}[op]
	root.call("frontend", method+" "+route, ptrace.SpanKindServer, 6, func(c *worldCall) {
		for key, value := range r.inputs {
			c.set(key, value)
		}
		c.set("user.id", fmt.Sprint("u-", w.random.IntN(2000)))
		c.set("http.request.method", method)
		c.set("http.route", route)
		c.span.Attributes().PutInt("cart.items", int64(r.items))
		c.call("cart", "Cart/Get", ptrace.SpanKindServer, 4, func(c *worldCall) {
			c.set("rpc.method", "Get")
			c.call("cart", "HGETALL", ptrace.SpanKindClient, 1, func(c *worldCall) { c.set("db.system.name", "redis") })
		})
		if op == 3 && !c.failed {
			c.call("checkout", "Checkout/Place", ptrace.SpanKindServer, 5, placeWorldOrder)
		}
		status := 200
		if c.failed {
			status = 502
		}
		c.span.Attributes().PutInt("http.response.status_code", int64(status))
	})
	return root.at
}

func placeWorldOrder(c *worldCall) {
	w := c.world
	for range 1 + w.random.IntN(3) {
		c.call("pricing", "Pricing/Quote", ptrace.SpanKindServer, 3, func(c *worldCall) {
			c.set("pricing.currency", []string{"EUR", "USD"}[w.random.IntN(2)])
			c.span.Attributes().PutDouble("pricing.amount", 100*w.random.Float64())
		})
	}
	reserve := func(c *worldCall) {
		c.call("inventory", "SELECT stock", ptrace.SpanKindClient, 6, func(c *worldCall) {
			c.set("db.collection.name", "stock")
			c.set("db.query.text", []string{"SELECT * FROM stock WHERE sku = ?", "SELECT * FROM stock WHERE sku IN (?)",
				"SELECT * FROM stock WHERE reserved ORDER BY age"}[w.pick(0.5, 0.3, 0.2)])
			c.set("db.shard", fmt.Sprint(w.random.IntN(8)))
		})
	}
	if c.call("inventory", "Inventory/Reserve", ptrace.SpanKindServer, 5, reserve); c.failed {
		return
	}
	c.call("payment", "POST /charges", ptrace.SpanKindServer, 5, func(c *worldCall) {
		c.set("payment.provider", []string{"northpay", "nova", "alipay"}[w.pick(0.6, 0.25, 0.15)])
		if versionOf("payment", c.instance) == "2.14.0" || w.chance(0.5) {
			c.set("feature_flag.key", "instant-settlement")
			c.set("feature_flag.result.variant", []string{"on", "off"}[w.random.IntN(2)])
		}
		c.call("payment", "POST", ptrace.SpanKindClient, 20, func(c *worldCall) {
			c.set("server.address", "api.northpay.example")
			c.set("peer.service", "northpay")
		})
		if !c.failed {
			c.call("payment", "INSERT charges", ptrace.SpanKindClient, 4, func(c *worldCall) { c.set("db.collection.name", "charges") })
		}
	})
	if c.failed {
		c.call("inventory", "Inventory/Release", ptrace.SpanKindServer, 3, func(c *worldCall) {
			c.call("inventory", "SELECT stock", ptrace.SpanKindClient, 4, func(c *worldCall) {
				c.set("db.collection.name", "stock")
				c.set("db.query.text", "SELECT reserved FROM stock WHERE order_id = ?")
			})
		})
		c.failed = true
		return
	}
	c.call("mail", "Mail/Send", ptrace.SpanKindServer, 5, nil)
}

func (c *worldCall) set(key, value string) {
	c.inputs[key] = value
	c.span.Attributes().PutStr(key, value)
}

// call adds a call of an operation, and repeats it in a storm.
func (c *worldCall) call(service, name string, kind ptrace.SpanKind, ms float64, do func(*worldCall)) {
	for attempt := range 3 {
		called := c.attempt(service, name, kind, ms, attempt, do)
		storm := slices.ContainsFunc(c.world.causes, func(p plantedCause) bool { return p.storm && p.operation == name })
		if !storm || !called.failed {
			c.failed = c.failed || called.failed
			return
		}
		c.failed = attempt == 2 || !c.world.slow && c.world.chance(0.6)
	}
}

func (c *worldCall) attempt(service, name string, kind ptrace.SpanKind, ms float64, attempt int, do func(*worldCall)) *worldCall {
	w := c.world
	w.ids++
	called := &worldCall{world: w, request: c.request, service: service, instance: c.instance, trace: c.trace, inputs: map[string]string{}}
	if service != c.service {
		called.instance = w.random.IntN(worldInstances)
	}
	called.span = w.scope(service, called.instance).Spans().AppendEmpty()
	s := called.span
	s.SetTraceID(c.trace)
	s.SetSpanID(pcommon.SpanID{byte(w.ids >> 24), byte(w.ids >> 16), byte(w.ids >> 8), byte(w.ids), 1})
	if c.span != (ptrace.Span{}) {
		s.SetParentSpanID(c.span.SpanID())
	}
	s.SetName(name)
	s.SetKind(kind)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(c.at))
	own := time.Duration(ms * math.Exp(0.4*w.random.NormFloat64()) * 1e6)
	called.at = c.at.Add(own)
	if attempt > 0 {
		s.Attributes().PutInt("retry.count", int64(attempt))
	}
	if do != nil {
		do(called)
	}
	called.affect(name)
	c.at = called.at
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(c.at))
	return called
}

// affect makes a call slow or failed if a cause is met, and rarely without one.
func (c *worldCall) affect(name string) {
	w := c.world
	hit := false
	for i := range w.causes {
		p := &w.causes[i]
		hit = hit || p.service == c.service && p.operation == name && p.met(c) && w.chance(p.share)
	}
	storm := slices.ContainsFunc(w.causes, func(p plantedCause) bool { return p.storm && p.operation == name })
	switch {
	case hit && w.slow:
		c.at = c.at.Add(time.Duration((150 + 150*w.random.Float64()) * 1e6))
		c.failed = c.failed || storm
	case hit, w.chance(0.002), len(w.causes) == 0 && !w.slow && w.chance(0.008):
		c.failed = true
		c.at = c.at.Add(time.Duration(30 * w.random.Float64() * 1e6))
	}
	if c.failed {
		c.span.Status().SetCode(ptrace.StatusCodeError)
		a := c.span.Attributes()
		a.PutStr("error.type", "UpstreamError")
		a.PutStr("failure.reason", fmt.Sprint("reason ", w.random.IntN(3)))
		// The name of this one does not tell that it is an outcome.
		a.PutStr("upstream.detail", []string{"reset", "refused"}[w.random.IntN(2)])
		if c.span.Kind() == ptrace.SpanKindServer {
			a.PutInt("rpc.grpc.status_code", 13)
		}
	}
}

func (w *explainedWorld) scope(service string, instance int) ptrace.ScopeSpans {
	id := fmt.Sprint(service, instance)
	if ss, ok := w.scopes[id]; ok {
		return ss
	}
	rs := w.traces.ResourceSpans().AppendEmpty()
	a := rs.Resource().Attributes()
	a.PutStr("service.name", service)
	a.PutStr("service.version", versionOf(service, instance))
	a.PutStr("service.instance.id", fmt.Sprintf("%s-%d", service, instance))
	a.PutStr("host.name", hostOf(service, instance))
	a.PutStr("cloud.availability_zone", string(rune('a'+instance%2)))
	ss := rs.ScopeSpans().AppendEmpty()
	w.scopes[id] = ss
	return ss
}
