// Answers of the routes about what is usual: `baseline/{id}` and `typical/{id}`.

import type { Nanos } from './types';

/** The durations of the operations of a trace, counted from `start` to `end`. Operations without calls are left out. */
export interface Baseline {
  start: Nanos;
  /** Exclusive. */
  end: Nanos;
  /** One value for each operation. Durations are nanoseconds. */
  operations: {
    service: string[];
    name: string[];
    /** One digit for each operation, the number of OTLP. */
    kind: string;
    calls: number[];
    p50: number[];
    p95: number[];
    p99: number[];
    /** First bucket with calls. Bucket b begins at 2^(b/8) ns. */
    bucket: number[];
    /** Calls of this bucket and of those after it. */
    counts: number[][];
  };
}

/** A trace that is typical among those with the same root. */
export interface Typical {
  /** "" if there is no other trace with this root. */
  traceID: string;
  duration: number;
  /** Number of traces from which it was chosen. */
  chosenFrom: number;
  /** Whether these have the same operations as the trace; else the most similar ones. */
  same: boolean;
  /** Number of traces with this root whose operations were compared. */
  examined: number;
  /** Calls of the root operation from `start` to `end`, 0 if unknown. */
  calls: number;
  /** Of the root. */
  service: string;
  name: string;
  start: Nanos;
  /** Exclusive. */
  end: Nanos;
}
