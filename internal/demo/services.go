package demo

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// Names of the services.
const (
	frontend       = "frontend"
	catalog        = "catalog"
	pricing        = "pricing"
	recommendation = "recommendation"
	cart           = "cart"
	checkout       = "checkout"
	inventory      = "inventory"
	payment        = "payment"
	shipping       = "shipping"
	notification   = "notification"
)

// service describes a service.
type service struct {
	name, version string
	instances     int
}

// services are the services of the shop.
func services() []service {
	return []service{
		{frontend, "5.2.1", 3}, {catalog, "3.0.4", 3}, {pricing, "1.9.0", 2}, {recommendation, "0.14.2", 2}, {cart, "2.6.0", 2},
		{checkout, "4.1.0", 3}, {inventory, "1.3.7", 2}, {payment, goodVersion, 6}, {shipping, "2.2.0", 2}, {notification, "1.1.5", 2},
	}
}

// hosts is the number of machines that run the instances.
const hosts = 4

// instance is an instance of a service in one version.
type instance struct {
	service string
	version string
	tracer  trace.Tracer
}

// describe returns the attributes of the resource of an instance.
func describe(s service, version string, number int) []attribute.KeyValue {
	name := fmt.Sprintf("%s-%d", s.name, number)
	return []attribute.KeyValue{
		semconv.ServiceName(s.name), semconv.ServiceNamespace("shop"), semconv.ServiceVersion(version), semconv.ServiceInstanceID(name),
		semconv.DeploymentEnvironmentName("demo"), semconv.HostName(fmt.Sprintf("node-%d", (len(s.name)+number)%hosts+1)),
		semconv.K8SNamespaceName("shop"), semconv.K8SPodName(name),
	}
}

const (
	goodVersion = "2.13.4"
	// badPeriod is the time between two releases of a bad version, badTime the time until it is
	// rolled back.
	badPeriod, badTime = 2 * time.Hour, 40 * time.Minute
	// badInstances is the number of instances of payment that run a bad version.
	badInstances = 3
)

// release returns the bad version of payment that runs at a time, or "". Each release has its own
// number.
func release(first, at time.Time) string {
	if at.Before(first) {
		return ""
	}
	n := at.Sub(first) / badPeriod
	if at.Sub(first)-n*badPeriod >= badTime {
		return ""
	}
	return fmt.Sprintf("2.14.%d", n)
}
