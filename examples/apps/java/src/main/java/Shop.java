import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import java.util.Map;

/**
 * Takes orders and sends a trace of each with the OpenTelemetry SDK. Arguments: the number of orders, and the time between
 * them in milliseconds.
 */
public final class Shop {
  /** Defaults of the SDK's environment variables. The SDK itself knows OTEL_TRACES_SAMPLER=jaeger_remote. */
  private static final Map<String, String> DEFAULTS = Map.of(
      "otel.service.name", "shop-java",
      "otel.resource.attributes", "service.version=1.0.0",
      "otel.exporter.otlp.protocol", "http/protobuf",
      "otel.metrics.exporter", "none",
      "otel.logs.exporter", "none");

  private final Tracer tracer;

  private Shop(OpenTelemetry telemetry) {
    tracer = telemetry.getTracer("shop", "1.0.0");
  }

  public static void main(String[] args) throws InterruptedException {
    int orders = args.length > 0 ? Integer.parseInt(args[0]) : 1;
    long pause = args.length > 1 ? Long.parseLong(args[1]) : 0;
    OpenTelemetrySdk sdk = AutoConfiguredOpenTelemetrySdk.builder()
        .addPropertiesSupplier(() -> DEFAULTS).build().getOpenTelemetrySdk();
    Shop shop = new Shop(sdk);
    for (int i = 1; i <= orders; i++) {
      SpanContext span = shop.takeOrder();
      System.out.println("order " + i + " trace " + span.getTraceId() + " sampled " + span.isSampled());
      Thread.sleep(pause);
    }
    sdk.close();
  }

  /** Handles a request of a client. */
  private SpanContext takeOrder() {
    Span span = tracer.spanBuilder("POST /orders").setSpanKind(SpanKind.SERVER)
        .setAttribute("http.request.method", "POST")
        .setAttribute("http.route", "/orders")
        .setAttribute("order.gift", true)
        .setAttribute("order.count", 2)
        .setAttribute("order.total", 12.75)
        .setAttribute(AttributeKey.stringArrayKey("order.items"), java.util.List.of("book", "pen"))
        .setAttribute(AttributeKey.longArrayKey("order.quantities"), java.util.List.of(1L, 2L))
        .setAttribute(AttributeKey.doubleArrayKey("order.prices"), java.util.List.of(9.5, 3.25))
        .setAttribute(AttributeKey.booleanArrayKey("order.in_stock"), java.util.List.of(true, false))
        .startSpan();
    try (Scope scope = span.makeCurrent()) {
      try {
        insert();
      } catch (IllegalStateException e) {
        span.addEvent("retry", Attributes.of(AttributeKey.longKey("retry.attempt"), 1L));
      }
      publish();
      span.setAttribute("http.response.status_code", 202);
    } finally {
      span.end();
    }
    return span.getSpanContext();
  }

  /** Calls the database, which refuses the statement. */
  private void insert() {
    Span span = tracer.spanBuilder("INSERT orders").setSpanKind(SpanKind.CLIENT)
        .setAttribute("db.system.name", "postgresql")
        .setAttribute("db.query.text", "INSERT INTO orders VALUES (?, ?)")
        .startSpan();
    try {
      IllegalStateException error = new IllegalStateException("deadlock detected");
      span.recordException(error);
      span.setStatus(StatusCode.ERROR, error.getMessage());
      throw error;
    } finally {
      span.end();
    }
  }

  /** Sends a message. */
  private void publish() {
    Span span = tracer.spanBuilder("send orders").setSpanKind(SpanKind.PRODUCER)
        .setAttribute("messaging.system", "kafka")
        .setAttribute("messaging.destination.name", "orders")
        .setAttribute("messaging.message.body.size", 512)
        .startSpan();
    span.setStatus(StatusCode.OK);
    span.end();
  }
}
