package demo

import (
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// maxItems is the maximum number of different items of an order.
const maxItems = 4

// buy is the checkout of a user.
func buy(o *operation) error {
	return o.rpc(checkout, "Checkout", "PlaceOrder", placeOrder)
}

func placeOrder(o *operation) error {
	items := 1 + o.random.IntN(maxItems)
	total := float64(500+o.random.IntN(20000)) / 100
	o.span.SetAttributes(attribute.Int("order.items", items), attribute.Float64("order.total", total))
	if err := o.rpc(cart, "Cart", "GetCart", func(o *operation) error {
		o.redis("HGETALL", "cart:"+o.user)
		return nil
	}); err != nil {
		return err
	}
	prepare := []handler{shippingQuote, reserve}
	for range items {
		prepare = append(prepare, func(o *operation) error { return o.rpc(pricing, "Pricing", "Quote", quote) })
	}
	if err := o.together(prepare...); err != nil {
		return err
	}
	if err := o.http(payment, http.MethodPost, "/charges", "/charges", func(o *operation) error { return charge(o, total) }); err != nil {
		o.rpc(inventory, "Inventory", "Release", func(o *operation) error { //nolint:errcheck // it does not fail
			o.sql("UPDATE", "stock", "UPDATE stock SET reserved = reserved - $1 WHERE order_id = $2", 4*time.Millisecond)
			return nil
		})
		return &failure{kind: "PaymentFailed", message: "payment failed, the reservation is released", status: http.StatusBadGateway,
			recorded: true}
	}
	o.sql("INSERT", "orders", "INSERT INTO orders (id, user_id, total) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING", 5*time.Millisecond)
	o.publish(fmt.Sprintf("order-%08x", o.random.Uint32()))
	return nil
}

// shippingQuote requests the shipping costs.
func shippingQuote(o *operation) error {
	return o.http(shipping, http.MethodPost, "/quotes", "/quotes", func(o *operation) error {
		return o.external(http.MethodGet, carrierHost, "/rates", "parcels", 0, func(o *operation) error {
			o.wait(35 * time.Millisecond)
			return nil
		})
	})
}

// reserve reserves the items of an order.
func reserve(o *operation) error {
	return o.rpc(inventory, "Inventory", "Reserve", func(o *operation) error {
		o.sql("SELECT", "stock", "SELECT sku, available FROM stock WHERE sku = ANY($1) FOR UPDATE", 7*time.Millisecond)
		if o.chance(0.002) {
			return &failure{kind: "OutOfStock", message: "an item is no longer in stock", status: http.StatusInternalServerError,
				stack: "OutOfStock: an item is no longer in stock\n    at Stock.reserve (stock.go:118)\n    at Inventory.Reserve (server.go:64)"}
		}
		o.sql("UPDATE", "stock", "UPDATE stock SET reserved = reserved + $1 WHERE sku = $2", 4*time.Millisecond)
		return nil
	})
}

// Behavior of the bad versions of payment.
const (
	flagKey = "instant-settlement"
	// shareOn is the share of payments with the flag on, shareTimeout the share of their attempts
	// that time out.
	shareOn, shareTimeout = 0.7, 0.97
	providerTimeout       = 700 * time.Millisecond
	attempts              = 3
)

// charge charges a payment. Where the flag of bad versions is on, the provider rarely responds.
func charge(o *operation, total float64) error {
	o.span.SetAttributes(attribute.Float64("payment.amount", total), attribute.String("payment.method", pick(o.request, methods)))
	bad := false
	if o.at.version != goodVersion {
		bad = o.chance(shareOn)
		variant := "off"
		if bad {
			variant = "on"
		}
		o.span.SetAttributes(attribute.String("feature_flag.key", flagKey), attribute.String("feature_flag.result.variant", variant))
	}
	share := 0.003
	if bad {
		share = shareTimeout
	}
	var err error
	for retry := range attempts {
		if retry > 0 {
			o.span.AddEvent("retry", trace.WithTimestamp(o.now), trace.WithAttributes(attribute.Int("attempt", retry+1)))
			o.wait(time.Duration(retry) * 40 * time.Millisecond)
		}
		if err = o.external(http.MethodPost, providerHost, "/v1/charges", "northpay", retry, provider(share)); err == nil {
			break
		}
	}
	if err != nil {
		message := fmt.Sprintf("northpay did not answer %d attempts", attempts)
		return &failure{kind: "PaymentError", message: message, status: http.StatusBadGateway,
			stack: "PaymentError: " + message + "\n    at Provider.settle (provider.kt:142)\n    at Charges.create (charges.kt:51)"}
	}
	o.sql("INSERT", "charges", "INSERT INTO charges (order_id, amount, provider_ref) VALUES ($1, $2, $3)", 4*time.Millisecond)
	return nil
}

var methods = []string{"card", "card", "wallet", "invoice"}

// provider simulates a request to the payment provider. A share of the requests times out.
func provider(share float64) handler {
	return func(o *operation) error {
		if !o.chance(share) {
			o.wait(60 * time.Millisecond)
			return nil
		}
		o.now = o.now.Add(providerTimeout)
		return &failure{kind: "UpstreamTimeout", message: fmt.Sprintf("no response from %s within %s", providerHost, providerTimeout),
			stack: "UpstreamTimeout: no response headers\n    at HttpClient.await (client.kt:214)\n    at Provider.settle (provider.kt:139)"}
	}
}
