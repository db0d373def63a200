// What the comparison of two traces consists of.

/** What differs in a row, as bits of `Comparison.change`. */
export const change = {
  /** The call path is in A only, and its parent is in both. */
  onlyA: 1,
  onlyB: 2,
  /** Called more or less often, not only because its caller is. */
  calls: 4,
  /** Fails in one trace only, and nothing below it does. */
  errors: 8,
  /** The time differs by more than the threshold. */
  time: 16,
} as const;

/** The spans of one trace by row: those of row r are spans[offset[r]] to spans[offset[r+1]-1], by start. */
export interface Side {
  offset: Int32Array;
  spans: Int32Array;
  /** Nanoseconds in which at least one span of the row ran. */
  time: Float64Array;
  /** The part of the spans' time in which no span called by them ran. */
  own: Float64Array;
  /** Number of spans with an error. */
  errors: Int32Array;
}

/** Two traces side by side. A row is a call path: the spans with the same service, operation and kind below those of the same row. Depth first. */
export interface Comparison {
  rows: number;
  /** Index of the row above, or -1. */
  parent: Int32Array;
  depth: Int32Array;
  a: Side;
  b: Side;
  /** See `change`. */
  change: Uint8Array;
  /** How much of the difference of the traces begins in the row, in nanoseconds; 0 where it only follows from other rows. */
  impact: Float64Array;
  /** Nanoseconds up to which different times count as equal. */
  threshold: number;
  /** Whether a row is in both traces at all. */
  common: boolean;
  /** Difference of the times on the critical path by service, largest first; gaps at their place. */
  parts: PathDifference[];
}

/** Difference of the critical paths: A - B nanoseconds. */
export interface PathDifference {
  kind: 'service' | 'waiting' | 'gap' | 'idle';
  /** Name of the service, "" for gaps and idle time. */
  name: string;
  time: number;
}
