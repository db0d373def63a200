// Answers of /api/ui/v1/errors, checked against the golden files of extensions/query/internal/uiapi/errorgroups.

import type { Nanos } from './types';

/** `errors`: the newest failed spans, grouped by service, type, message and top frame. */
export interface Errors extends ErrorPeriod {
  /** The time of the same length before; only with the parameter `before`. */
  before?: ErrorPeriod;
  /** Groups beyond the limit, which have the fewest spans. */
  omitted: number;
  groups: ErrorGroup[];
}

/** What was examined of a time range. */
export interface ErrorPeriod {
  /** Number of failed spans that were examined; if not complete, older ones were not. */
  examined: number;
  complete: boolean;
  /** All failed spans after this time were examined. */
  since: Nanos;
}

export interface ErrorGroup {
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
  first: Nanos;
  last: Nanos;
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
