// Answers of /api/ui/v1/tree, checked against the golden files of extensions/query/internal/uiapi/explain.

import type { ExplainSide } from './explain';

/** Traces as one tree. */
export interface TraceTree {
  /** The traces that were examined, of all that are selected. */
  set: ExplainSide;
  paths: TreePaths;
}

/** Call paths; parents come before their children. Times are nanoseconds. */
export interface TreePaths {
  /** Index, or -1. */
  parent: number[];
  service: string[];
  name: string[];
  kind: string[];
  /** Examined traces that have the path. */
  traces: number[];
  calls: number[];
  errors: number[];
  /** Own time on the critical path; mean of all examined traces. */
  self: number[];
  /** Median time after the start of the trace. */
  start: number[];
  p50: number[];
  p95: number[];
  slowest: SpanRef[];
  /** The slowest failed call. */
  failed: (SpanRef | null)[];
  /** Call paths with less time than all others. */
  omitted: number;
}

/** A span of a trace. */
export interface SpanRef {
  trace: string;
  span: string;
}
