// Answers of /api/ui/v1, checked against the golden files of extensions/query/internal/uiapi.

export type * from './attributes';

/** Decimal nanoseconds since the Unix epoch. JavaScript numbers cannot represent them. */
export type Nanos = string;

/** Every JSON answer. `errors` says why `data` is incomplete. */
export interface Envelope<T> {
  data: T;
  /** Counts of the compatible API, always 0 here. */
  total?: number;
  limit?: number;
  offset?: number;
  errors: ApiMessage[] | null;
}

export interface ApiMessage {
  code?: number;
  msg: string;
  traceID?: string;
}

/** Data in the page itself, which everyone can read. Not an answer of the API. */
export interface Boot {
  version: Config['version'];
  /** Schemes of which the API requires one. None: no credentials are needed. */
  auth: ('basic' | 'bearer')[];
  /** Header that names the tenant of a request, or "" if tenants are not separated. */
  tenantHeader: string;
}

export interface Config {
  version: { gitCommit: string; gitVersion: string; buildDate: string };
  capabilities: Capabilities;
  defaultLookback: number;
  limits: {
    traces: number;
    traceSize: number;
    scannedSpans: number;
    aggregatedSpans: number;
    queryTimeout: number;
    columns: number;
    exemplars: number;
    facets: number;
    facetValues: number;
    searchText: number;
    tailSpansPerSecond: number;
  };
  language: Language;
  links: LinkTemplate[];
}

/** A link to another system, with placeholders in its address. See docs/link-templates.md. */
export interface LinkTemplate {
  name: string;
  url: string;
  on: 'trace' | 'span' | 'attribute' | 'service' | 'search';
  /** Attribute of `on: attribute`, or "". */
  key: string;
  /** `attribute.KEY` or `resource.KEY`: the link needs their values. */
  requires: string[];
  /** Text with placeholders for `{query}`, or "". */
  query: string;
  /** Nanoseconds that are subtracted from `{start}` and added to `{end}`. */
  margin: number;
}

/** What the store and the configuration support. A page names what is missing and works without it. */
export interface Capabilities {
  aggregates: boolean;
  archive: boolean;
  metrics: boolean;
  dependencies: boolean;
  attributes: boolean;
  tail: boolean;
  tenancy: boolean;
  demo: boolean;
}

/** The words of the search language. */
export interface Language {
  fields: { name: string; type: string; values?: string[] }[];
  scopes: string[];
  comparisons: string[];
  logical: string[];
  structural: string[];
  durationUnits: string[];
}

/** `critical`: critical paths of listed traces. Those that were not read are missing. */
export interface CriticalPaths {
  paths: CriticalPath[];
}

/** The time of each service on the critical path of a trace in nanoseconds, the longest first, and the time in which nothing was recorded. */
export interface CriticalPath {
  traceID: string;
  services: { name: string; time: number }[];
  gap: number;
}

/** A line of the NDJSON stream of `search`: one of the members is set. */
export interface SearchLine {
  progress?: { scanned: number };
  trace?: TraceSummary;
  outcome?: SearchOutcome;
  error?: { code: number; msg: string };
}

export interface TraceSummary {
  traceID: string;
  /** Latest start of a matching span. */
  match: Nanos;
  rootService: string;
  rootName: string;
  start: Nanos;
  /** Nanoseconds. */
  duration: number;
  spans: number;
  errors: number;
  /** Number of spans whose parent is missing. */
  orphans: number;
  services: { name: string; spans: number; errors: number }[];
  /**
   * Matching spans: their number, and the ids of the first ones by start (at most 10). Present with
   * the parameter `matched=1` or with `select(...)`, except in traces too long to be read.
   */
  matched?: { spans: number; ids: string[] };
  /**
   * Values of the fields of `select(...)`, on the matching spans, at most 3 for each field. Names are
   * as in facets: `service.name` is `service`, and `http.method` is `.http.method`. Durations are
   * decimal nanoseconds.
   */
  fields?: Record<string, string[]>;
}

export interface SearchOutcome {
  complete: boolean;
  reason: string;
  traces: number;
  scanned: number;
  /** Cursor of the next page, or "". */
  next: string;
}

/**
 * Numbers of spans, or of traces with the parameter `of=traces`: then `spans`, `errors` and the
 * estimates count traces, durations and starts are those of whole traces, an error is a trace with
 * a failed span, and an exemplar is the root span (or the first one) with the duration of the trace.
 *
 * Cells that are not empty. Bucket b begins at 2^(b/bucketsPerOctave) nanoseconds. */
export interface Heatmap {
  /** What is counted; absent means spans. */
  of?: 'spans' | 'traces';
  start: Nanos;
  /** Nanoseconds. */
  step: number;
  columns: number;
  bucketsPerOctave: number;
  spans: number;
  errors: number;
  share: number;
  scanned: number;
  estimatedSpans: number;
  estimatedErrors: number;
  relativeError?: number;
  cells: { column: number[]; bucket: number[]; count: number[]; errors: number[] };
  exemplars: {
    traceID: string[];
    spanID: string[];
    start: Nanos[];
    duration: number[];
    service: string[];
    name: string[];
    error: boolean[];
    /** What failed in failed spans, or ""; only with the parameter `errorTypes`. */
    errorType?: string[];
  };
}

export interface Facets {
  spans: number;
  errors: number;
  selected: number;
  share: number;
  scanned: number;
  estimatedSpans: number;
  estimatedErrors: number;
  estimatedSelected: number;
  relativeError?: number;
  omitted: number;
  facets: Facet[];
}

export interface Facet {
  field: string;
  /** All names of an attribute that was renamed, the newest first. */
  names?: string[];
  spans: number;
  selected: number;
  distinct: number;
  other: number;
  score: number;
  values: { text: string[]; count: number[]; selected: number[]; score: number[] };
}

export interface Names {
  names: string[];
  more: boolean;
  /**
   * Whether the names are limited to what occurs on spans that match `q` from `start` to `end`. If
   * not although `q` was given, that would have taken too long or is not supported for this field:
   * the names are those of all spans. Restricted names come with the most frequent first, all others
   * in alphabetical order. Absent without `q`.
   */
  restricted?: boolean;
}

/** A trace without attributes, as columns. docs/ui-api.md describes the members. */
export interface Outline {
  traceID: string;
  start: Nanos;
  duration: number;
  spans: number;
  errors: number;
  cut: boolean;
  /** The trace may still receive spans: its last span was stored or ended a short time ago. */
  growing?: boolean;
  services: string[];
  names: string[];
  columns: {
    parent: number[];
    start: number[];
    duration: number[];
    name: number[];
    service: number[];
    kind: string;
    flags: string;
    id: string;
  };
  /** Events, by span and time. `time` is relative to the start of the span. */
  events?: { span: number[]; time: number[]; name: number[]; exception: string };
  /** Spans with links, and how many. */
  links?: { span: number[]; count: number[] };
  /** Name of the called service, as index in `services`, of spans that call a service without spans of its own. */
  peers?: { span: number[]; service: number[] };
  /** Clock-skew correction: nanoseconds to add to the start of a span (and of its events). */
  skew?: { span: number[]; shift: number[] };
  /** What is wrong with single spans. */
  warnings?: { span: number[]; text: string[] };
}

/** `outline/{id}/spans?ids=`: the named spans in full. */
export interface SpanDetails {
  spans: SpanDetail[];
}

export interface SpanDetail {
  spanID: string;
  parentSpanID: string;
  traceState: string;
  service: string;
  name: string;
  kind: string;
  status: string;
  statusMessage: string;
  start: Nanos;
  duration: number;
  attributes: Attribute[];
  resource: Attribute[];
  scope: { name: string; version: string; attributes: Attribute[] };
  events: { name: string; time: Nanos; attributes: Attribute[] }[];
  links: { traceID: string; spanID: string; traceState: string; attributes: Attribute[] }[];
  /** Spans of the same trace that link to this span. */
  linkedFrom: { spanID: string; service: string; name: string }[];
  warnings: string[];
}

export interface Attribute {
  key: string;
  type: 'string' | 'int' | 'double' | 'bool' | 'bytes' | 'array' | 'kvlist' | 'empty';
  /** Text form; JSON for arrays and lists, base64 for bytes. */
  value: string;
}

/** `outline/{id}/find?q=`: ids of matching spans, 8 bytes each, in base64, in any order. */
export interface Found {
  matched: number;
  ids: string;
}

/** `services`: rate, errors and durations of the requests of each service. */
export interface Services {
  /** The range, extended to whole steps: `summary` covers `start` to `end` (exclusive, at most now). */
  start: Nanos;
  end: Nanos;
  /** Start of what was read; `usual` is of the day before `end`. */
  usualStart: Nanos;
  step: number;
  points: number;
  /** Sum over all services, listed or not. A request that passes several services counts for each. */
  total: ServiceSeries;
  services: (ServiceSeries & { name: string; inferred: boolean })[];
}

/** Lists have one element for each step; null where there were no calls. Durations in nanoseconds. */
export interface ServiceSeries {
  calls: number[];
  errors: number[];
  p50: (number | null)[];
  p95: (number | null)[];
  p99: (number | null)[];
  summary: Red;
  /** Of quiet time, or null if too little is known. */
  usual: Usual | null;
  /** The latest one in the range, or null. */
  incident: Incident | null;
  /** Since the start of the incident that goes on; of a sum since the first of several. Otherwise null. */
  since: Since | null;
}

/** Calls since a time. */
export interface Since extends Red {
  start: Nanos;
}

/** Calls of quiet time. */
export interface Usual extends Red {
  /** Length of the quiet time in nanoseconds. */
  quiet: number;
}

/** Time in which a service is worse than usual. The numbers are of that time. */
export interface Incident extends Red {
  kind: 'errors' | 'slow';
  /** Null if it is not known. */
  start: Nanos | null;
  /** Null if it goes on. */
  end: Nanos | null;
  /** Duration in nanoseconds from which requests count as slow, 0 for errors. */
  slowFrom: number;
}

export interface Red {
  calls: number;
  errors: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/** `changes`: what appeared or changed, newest first. */
export interface Changes {
  changes: Change[];
  /** Spans of the sample in which changes were looked for. */
  examined: number;
  /** Everything that the sample suggests was checked. */
  complete: boolean;
}

export interface Change {
  at: Nanos;
  service: string;
  kind: 'version' | 'instances' | 'attribute' | 'service';
  /** Version or number of instances before, or "". */
  from: string;
  /** Version or number of instances after, or the attribute key. */
  to: string;
}

/** `ingest`: counters of this process since it started. With tenants, `errors` says what is left out. */
export interface Ingest {
  /** Whether this process receives spans. A query service does not. */
  receives: boolean;
  now: Nanos;
  since: Nanos;
  /** Spans. */
  received: number;
  refused: number;
  dropped: number;
  /** Requests and datagrams that were refused before their spans were read: malformed, too large, no credentials. */
  refusedRequests: number;
  /** By receiver and protocol. */
  receivers: {
    name: string;
    protocol: string;
    /** Addresses, separated by ", ". */
    endpoint: string;
    received: number;
    refused: number;
    refusedRequests: number;
    /** Last refusal, if any. */
    refusal?: { reason: string; at: Nanos };
  }[];
  /** About when the oldest stored span arrived, or "". */
  oldest: Nanos;
  /** About when the oldest and the newest stored span started, or "". */
  oldestStart: Nanos;
  newestStart: Nanos;
  /** Bytes on disk and their limit, 0 if unknown or unlimited. */
  storedBytes: number;
  maxBytes: number;
  /** Nanoseconds, 0 if unlimited or unknown. */
  retention: number;
}
