"""Takes orders and sends a trace of each with the OpenTelemetry SDK:

python shop.py [ORDERS [PAUSE_MS]]
"""

import sys
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

SERVICE = "shop-python"


class DeadlockError(Exception):
    """The error of the database."""


def take_order(tracer):
    """Handles a request of a client."""
    attributes = {
        "http.request.method": "POST",
        "http.route": "/orders",
        "order.gift": True,
        "order.count": 2,
        "order.total": 12.75,
        "order.items": ["book", "pen"],
        "order.quantities": [1, 2],
        "order.prices": [9.5, 3.25],
        "order.in_stock": [True, False],
    }
    with tracer.start_as_current_span("POST /orders", kind=SpanKind.SERVER, attributes=attributes) as span:
        try:
            insert(tracer)
        except DeadlockError:
            span.add_event("retry", {"retry.attempt": 1})
        publish(tracer)
        span.set_attribute("http.response.status_code", 202)
        return span.get_span_context()


def insert(tracer):
    """Calls the database, which refuses the statement."""
    attributes = {"db.system.name": "postgresql", "db.query.text": "INSERT INTO orders VALUES (?, ?)"}
    with tracer.start_as_current_span(
        "INSERT orders", kind=SpanKind.CLIENT, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        error = DeadlockError("deadlock detected")
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, str(error)))
        raise error


def publish(tracer):
    """Sends a message."""
    attributes = {"messaging.system": "kafka", "messaging.destination.name": "orders", "messaging.message.body.size": 512}
    with tracer.start_as_current_span("send orders", kind=SpanKind.PRODUCER, attributes=attributes) as span:
        span.set_status(Status(StatusCode.OK))


def main():
    """Takes as many orders as the command line says."""
    orders = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    pause = int(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 0
    provider = TracerProvider(resource=Resource.create({"service.name": SERVICE, "service.version": "1.0.0"}))
    # The exporter reads OTEL_EXPORTER_OTLP_ENDPOINT; the default is http://localhost:4318.
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    tracer = trace.get_tracer("shop", "1.0.0")
    for i in range(1, orders + 1):
        span = take_order(tracer)
        print(f"order {i} trace {span.trace_id:032x} sampled {str(span.trace_flags.sampled).lower()}", flush=True)
        time.sleep(pause)
    provider.shutdown()


if __name__ == "__main__":
    main()
