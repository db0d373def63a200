package demo

import (
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// Shares of the requests of users.
const (
	shareCheckout = 0.25
	shareCart     = 0.2
	shareProduct  = 0.35
)

// visit handles one request of a user, starting at a time.
func (r *request) visit(at time.Time) {
	switch kind := r.random.Float64(); {
	case kind < shareCheckout:
		r.page(at, http.MethodPost, "/checkout", "/checkout", buy)
	case kind < shareCheckout+shareCart:
		r.page(at, http.MethodPost, "/cart", "/cart", addToCart)
	case kind < shareCheckout+shareCart+shareProduct:
		r.page(at, http.MethodGet, "/products/{id}", fmt.Sprintf("/products/%d", r.random.IntN(5000)), showProduct)
	default:
		r.page(at, http.MethodGet, "/", "/", showHome)
	}
}

// page handles a request of a browser in the frontend.
func (r *request) page(at time.Time, method, route, path string, do handler) {
	o := r.start(r.shop.ctx, r.shop.pick(frontend, r, at), at, method+" "+route, trace.SpanKindServer, []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route), semconv.URLPath(path), semconv.URLScheme("https"),
		semconv.ServerAddress("www.shop.example"), semconv.UserAgentOriginal(pick(r, browsers)), semconv.UserID(r.user),
		attribute.String("user.tier", r.tier), attribute.String("client.geo.country", pick(r, countries)),
	})
	o.wait(2 * time.Millisecond)
	err := do(o)
	o.wait(time.Millisecond)
	o.span.SetAttributes(semconv.HTTPResponseStatusCode(statusOf(err)))
	o.end(err)
}

var (
	browsers = []string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36",
	}
	countries = []string{"DE", "FR", "IT", "ES", "PL", "NL", "SE"}
	tiers     = []string{"standard", "standard", "standard", "plus"}
)

// pick returns one of several values.
func pick[T any](r *request, all []T) T { return all[r.random.IntN(len(all))] }

func showHome(o *operation) error {
	return o.together(
		func(o *operation) error {
			return o.http(catalog, http.MethodGet, "/products", "/products?page=1", listProducts)
		},
		recommend,
	)
}

func listProducts(o *operation) error {
	o.redis("GET", "catalog:page:1")
	if o.chance(0.1) {
		o.sql("SELECT", "products", "SELECT id, name, price FROM products ORDER BY rank LIMIT $1", 18*time.Millisecond)
		o.redis("SET", "catalog:page:1")
	}
	o.wait(3 * time.Millisecond)
	return nil
}

// recommend requests recommendations. If that fails, the page is shown without them.
func recommend(o *operation) error {
	err := o.rpc(recommendation, "Recommendation", "List", func(o *operation) error {
		o.redis("MGET", "features:"+o.user)
		if o.chance(0.002) {
			o.wait(250 * time.Millisecond)
			return &failure{kind: "ModelTimeout", message: "ranking model did not answer within 250 ms", status: http.StatusGatewayTimeout,
				stack: "ModelTimeout: ranking model did not answer within 250 ms\n    at Ranker.score (ranker.ts:57)\n    at List.run (list.ts:23)"}
		}
		return o.child("rank", trace.SpanKindInternal, []attribute.KeyValue{attribute.Int("model.candidates", 50+o.random.IntN(200))},
			func(o *operation) error {
				o.wait(12 * time.Millisecond)
				return nil
			})
	})
	if err != nil {
		o.span.AddEvent("page without recommendations", trace.WithTimestamp(o.now))
	}
	return nil
}

func showProduct(o *operation) error {
	err := o.together(
		func(o *operation) error {
			id := o.random.IntN(5000)
			return o.http(catalog, http.MethodGet, "/products/{id}", fmt.Sprintf("/products/%d", id), func(o *operation) error {
				return loadProduct(o, id)
			})
		},
		func(o *operation) error { return o.rpc(pricing, "Pricing", "Quote", quote) },
		recommend,
	)
	o.wait(4 * time.Millisecond)
	return err
}

// loadProduct reads a product through the cache.
func loadProduct(o *operation, id int) error {
	key := fmt.Sprintf("product:%d", id)
	o.redis("GET", key)
	hit := o.chance(0.85)
	o.span.SetAttributes(attribute.Bool("cache.hit", hit), attribute.Int("product.id", id))
	if !hit {
		o.sql("SELECT", "products", "SELECT id, name, price, description FROM products WHERE id = $1", 6*time.Millisecond)
		o.redis("SET", key)
	}
	return nil
}

func quote(o *operation) error {
	o.span.SetAttributes(attribute.String("pricing.currency", pick(o.request, []string{"EUR", "EUR", "EUR", "PLN", "SEK"})))
	o.wait(1500 * time.Microsecond)
	return nil
}

func addToCart(o *operation) error {
	return o.rpc(cart, "Cart", "AddItem", func(o *operation) error {
		if err := o.http(catalog, http.MethodGet, "/products/{id}", "/products/1", func(o *operation) error {
			return loadProduct(o, o.random.IntN(5000))
		}); err != nil {
			return err
		}
		o.redis("HSET", "cart:"+o.user)
		return nil
	})
}
