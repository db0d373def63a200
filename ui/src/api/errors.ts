// Answers of /api/ui/v1/errors, checked against the golden files of extensions/query/internal/uiapi/errorgroups.

import type { Nanos } from './types';

/** `errors`: the failed spans, grouped by service, type, message and top frame. */
export interface Errors extends ErrorPeriod {
  /** The time of the same length before; only with the parameter `before`. */
  before?: ErrorPeriod;
  /** Groups beyond the limit, the last ones of the order. */
  omitted: number;
  groups: ErrorGroup[];
}

/** What was counted of a time range. */
export interface ErrorPeriod {
  /** Number of failed spans; an estimate if `share` is below 1. */
  spans: number;
  /** All failed spans were counted. */
  complete: boolean;
  /** Share of the spans that were examined. All counts are estimates if it is below 1. */
  share: number;
  /** Nothing before this time was counted. Missing: all of the time range was. */
  since?: Nanos;
}

/** How a group develops: not seen before, or more often than before. An error that occurs at this time each day is usual. */
export interface Trend {
  kind: 'usual' | 'new' | 'growing';
  /** Of `growing`: how much more often. */
  factor?: number;
  since?: Nanos;
  /** Missing: it continues. */
  until?: Nanos;
}

export interface ErrorGroup {
  id: string;
  service: string;
  /** The most frequent operation; the only one if there is neither a pattern nor a frame. */
  operation: string;
  /** Most frequent first, at most 10. `otherOperations` counts spans of further ones. */
  operations: CountedText[];
  otherOperations: number;
  /** Values of `service.version`. */
  versions: CountedText[];
  /** Of the exception, `error.type`, or the status of HTTP or gRPC; or "". */
  type: string;
  /** The message with placeholders instead of its variable parts. */
  pattern: string;
  /** Innermost frame of the stack trace, preferably of the application; or "". */
  frame: string;
  /** The conditions that find the spans, as within braces. */
  where: string;
  count: number;
  /** Spans in the time before. */
  before?: number;
  /** Spans at the same time of the days before, the latest first. Missing: no error was new or growing. */
  days?: number[];
  first: Nanos;
  last: Nanos;
  trend: Trend;
  /** Counts in equal parts of the time range. */
  points: number[];
  /** Of the newest span. */
  message: string;
  traceID: string;
  spanID: string;
}

/** A text and how often it occurs. */
export interface CountedText {
  text: string;
  count: number;
}
