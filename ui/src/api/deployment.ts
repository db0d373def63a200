// Answers about the processes of a deployment. Their times are those of RFC 3339, their durations nanoseconds.

/** What one process answered; `data` is null if it did not. */
export interface ProcessAnswer<T> {
  /** "" for the process that serves this page. */
  address: string;
  error?: string;
  data: T | null;
}

/** `GET status` and `GET sampling`. */
export interface Processes<T> {
  /** Number of configured other processes. */
  peers: number;
  /** What depends on the data of all tenants is left out. */
  hidden: boolean;
  processes: ProcessAnswer<T>[];
}

/** `GET status`. */
export interface StatusAnswer extends Processes<Details> {
  /** Those of the process that serves this page, the oldest first; none where requests name their tenant. */
  queries: RunningQuery[];
  maxQueries: number;
}

/** A query that runs. */
export interface RunningQuery {
  operation: string;
  since: string;
  /** Search. */
  text?: string;
  client?: string;
  /** Spans read until now, if known. */
  scanned?: number;
  /** Bytes of memory. */
  held: number;
}

export type State = 'ok' | 'degraded' | 'starting' | 'stopped';

/** State of a component. */
export interface ComponentState {
  component: string;
  kind: string;
  status: State;
  reason?: string;
  since: string;
  held?: number;
}

/** What a receiver received over one transport. */
export interface ReceiverState {
  component: string;
  transport: string;
  addresses: string[] | null;
  received: number;
  refused: number;
  refusedRequests: number;
  refusal?: { reason: string; at: string };
}

/** Spans of a component by outcome. */
export interface Account {
  component: string;
  kind: string;
  in: number;
  accepted: number;
  sent: number;
  refused: number;
  dropped: number;
  lost: number;
  queued: number;
  held: number;
  reasons: { outcome: string; reason: string; spans: number }[];
}

/** The equation of the spans of pipelines. */
export interface Balance {
  pipelines: string[];
  ways: number;
  received: number;
  stored: number;
  sent: number;
  refused: number;
  dropped: number;
  lost: number;
  queued: number;
  held: number;
  difference: number;
  verdict: 'balanced' | 'in_progress' | 'twice' | 'more' | 'unbalanced' | 'unknown';
}

/** A sending queue. */
export interface Queue {
  component: string;
  storage: string;
  overflow: string;
  spans: number;
  bytes: number;
  maxBytes: number;
  size: number;
  maxSize: number;
  sizer: string;
  waiting: number;
  age: number;
}

/** A store of spans. */
export interface StoreState {
  component: string;
  place?: string;
  spans: number;
  bytes: number;
  maxBytes: number;
  retention: number;
  free?: number;
  segments: number;
  quarantined: number;
  logBytes: number;
  /** First arrival. */
  oldest?: string;
  /** Start of the oldest span. */
  oldestStart?: string;
  parts: { start: string; spans: number }[];
  gaps: { from: string; to: string }[];
  expiring: { within: number; spans: number; bytes: number }[];
  problem?: string;
}

/** Everything that operators see of a process. */
export interface Details {
  process: string;
  build: { version: string; commit: string; date: string };
  now: string;
  since: string;
  report: {
    status: State;
    pipelines: { pipeline: string; status: State; components: ComponentState[] }[];
    beside: ComponentState[];
    configuration: { since: string; reloads: number; problem?: string; problem_since?: string };
  };
  intake: { since: string; dropped: number; receivers: ReceiverState[] | null };
  accounts: Account[];
  balances: Balance[];
  queues: Queue[];
  stores: StoreState[];
  limits: { key: string; used: number; peak: number; max: number }[];
  /** The running configuration as YAML, without secrets and without values of environment variables and files; not shown to tenants. */
  configuration?: string;
}

/** The sampler that clients use for an operation. */
export interface Sampler {
  type: string;
  param: number;
  lowerBound?: number;
  ofOperation: boolean;
}

/** Where a strategy comes from. */
export interface Origin {
  source: string;
  place?: string;
  rule: string;
  since?: string;
  problem?: string;
}

/** An answered request of a client. */
export interface ServedRequest {
  address: string;
  client?: string;
  transport?: string;
  at: string;
  told: string;
  failed?: boolean;
  kept?: string;
  current: boolean;
}

/** The strategy of a service. */
export interface ServiceStrategy {
  service: string;
  sampler: Sampler;
  operations: number;
  origin: Origin;
  clients: number;
  last?: ServedRequest;
}

/** The probability of an operation over time. */
export interface OperationHistory {
  service: string;
  operation: string;
  probability: number;
  rate: number;
  reason: string;
  changed: string;
  points: { at: string; probability: number; rate: number }[];
}

/** The strategies of a provider. */
export interface Provider {
  component: string;
  default: ServiceStrategy;
  services: ServiceStrategy[];
  omitted: number;
  adaptive?: { targetSamplesPerSecond: number; interval: number; calculated?: string; by?: string; leader?: string; operations: OperationHistory[]; omitted: number };
}

/** The strategies of a process. */
export interface Strategies {
  providers: Provider[];
  problems?: string[];
}

export type Verdict = 'keeps' | 'drops' | 'depends';

/** One of several rules of a stage. */
export interface Rule {
  name: string;
  type: string;
  text: string;
  verdict: Verdict;
  probability?: number;
  needs?: number;
}

/** A place at which a trace is kept or dropped. */
export interface Stage {
  component?: string;
  kind: string;
  pipelines?: string[];
  method: string;
  verdict: Verdict;
  probability?: number;
  needs?: number;
  key?: string;
  wait?: number;
  rules?: Rule[];
}

/** What a process does with a trace. */
export interface ProcessExplanation {
  strategies: { component: string; service: string; operation?: string; strategy: null; adaptive?: unknown; sampler: Sampler; origin: Origin; askers: ServedRequest[]; notes?: string[] }[];
  stages: Stage[];
  problems?: string[];
}

/** Something other than sampling that may be why a trace is missing. */
export interface Cause {
  code: string;
  process: number;
  component?: string;
  spans?: number;
  requests?: number;
  at?: string;
  reason?: string;
  duration?: number;
}

/** What would keep such a trace. */
export interface Change {
  code: string;
  process: number;
  component?: string;
  key?: string;
  place?: string;
  from?: number;
  to?: number;
  kept?: number;
  factor?: number;
}

/** `GET sampling/explain`. */
export interface MissingTrace {
  service: string;
  operation: string;
  trace: string;
  tenant: string;
  stored: { trace: string; spans: number; services: string[]; service: string; similar: string[]; known: number };
  verdict: 'stored' | Verdict;
  deciding: { process: number; stage: number } | null;
  peers: number;
  hidden: boolean;
  processes: ProcessAnswer<ProcessExplanation>[];
  causes: Cause[];
  changes: Change[];
}
