/** A trace, and a span of it if the text named one. */
export interface TraceRef {
  trace: string;
  span: string;
}

const hex = /^[0-9a-f]{1,32}$/;

/**
 * Finds a trace id in what a user pasted: hex of any length up to 32 digits, a UUID, `traceparent`, `b3`, `X-Amzn-Trace-Id`,
 * or a URL of this UI, Jaeger, Zipkin or Grafana. Null if there is none.
 */
export function parseTraceRef(input: string): TraceRef | null {
  const text = input.trim().replace(/^["'`<]+|["'`>,;]+$/g, '').trim();
  return header(text) ?? plain(text) ?? (/^[a-z][a-z0-9+.-]*:\/\/|^\//i.test(text) ? fromURL(text) : null);
}

function ref(trace: string, span = ''): TraceRef | null {
  const t = trace.toLowerCase();
  return hex.test(t) && /[^0]/.test(t) ? { trace: t, span: span.toLowerCase() } : null;
}

/** Hex, with `0x` or as UUID. */
function plain(text: string): TraceRef | null {
  const id = text.replace(/^(trace[-_ ]?id|trace)\s*[:=]?\s*/i, '').replace(/^0x/i, '').replace(/^"|"$/g, '');
  return ref(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id) ? id.replaceAll('-', '') : id);
}

/** The value of a propagation header, with or without its name. */
function header(text: string): TraceRef | null {
  const w3c = /^(?:traceparent\s*[:=]\s*)?"?[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/i.exec(text);
  if (w3c) return ref(w3c[1], w3c[2]);
  const b3 = /^(?:b3\s*[:=]\s*)?([0-9a-f]{16}|[0-9a-f]{32})-([0-9a-f]{16})(-[01d])?(-[0-9a-f]{16})?$/i.exec(text);
  if (b3) return ref(b3[1], b3[2]);
  const jaeger = /^(?:uber-trace-id\s*[:=]\s*)?([0-9a-f]{1,32}):([0-9a-f]{1,16}):[0-9a-f]{1,16}:[0-9a-f]{1,2}$/i.exec(text);
  if (jaeger) return ref(jaeger[1], jaeger[2].padStart(16, '0'));
  const aws = /Root=1-([0-9a-f]{8})-([0-9a-f]{24})/i.exec(text);
  return aws ? ref(aws[1] + aws[2]) : null;
}

function fromURL(text: string): TraceRef | null {
  let url: URL;
  try {
    url = new URL(text, 'http://localhost');
  } catch {
    return null;
  }
  const span = url.searchParams.get('span') ?? url.searchParams.get('spanId') ?? url.searchParams.get('spanID') ?? url.searchParams.get('uiFind') ?? '';
  const spanID = /^[0-9a-f]{16}$/i.test(span) ? span : '';
  const path = /\/traces?\/([0-9a-f]{1,32})(?![0-9a-f])/i.exec(decode(url.pathname));
  if (path) return ref(path[1], spanID);
  for (const [key, value] of url.searchParams) {
    if (/^(trace[-_]?id|query)$/i.test(key) && plain(value)) return ref(plain(value)!.trace, spanID);
  }
  // Grafana keeps the id in JSON within a parameter, named in several ways.
  const long = /(?:^|[^0-9a-f])([0-9a-f]{32}|[0-9a-f]{16})(?![0-9a-f])/i.exec(decode(url.search + url.hash));
  return long ? ref(long[1], spanID === long[1] ? '' : spanID) : null;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
