// Answers of /api/ui/v1/groups, checked against the golden files of extensions/query/internal/uiapi/spangroups.

/** `groups`: spans or traces with the same values of one or two fields. Counts are of the examined share. */
export interface Groups {
  /** What is counted. An error of a trace is a failed span in it, its duration that of the whole trace. */
  of: 'spans' | 'traces';
  /** Fields, as in searches. */
  by: string[];
  spans: number;
  errors: number;
  share: number;
  scanned: number;
  estimatedSpans: number;
  estimatedErrors: number;
  relativeError?: number;
  /** Groups, including those beyond the limit. */
  distinct: number;
  /** Spans of further groups, which were not counted one by one. */
  other: number;
  all: GroupDurations;
  /** In the requested order. */
  groups: {
    /** A list for each field; null where spans have no value. */
    values: (string | null)[][];
    /** The conditions that select the group, as within braces. */
    where: string[];
    count: number[];
    errors: number[];
    p50: number[];
    p95: number[];
    p99: number[];
    time: number[];
  };
}

/** Durations in nanoseconds. */
export interface GroupDurations {
  p50: number;
  p95: number;
  p99: number;
  /** Sum. */
  time: number;
}
