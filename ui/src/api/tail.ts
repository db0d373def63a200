// Events of `tail?of=traces`.

import type { TraceSummary } from './types';

/** Event `trace`: a trace that has been quiet. It comes again after further spans. */
export type TailTrace = TraceSummary;

/** Event `status`: counts since the beginning of the answer. */
export interface TailStatus {
  /** Traces that were sent. */
  shown: number;
  /** Of how many traces one is in the sample: 1, 2, 4, ... */
  oneIn: number;
  /** Traces in the sample that were not sent. */
  leftOut: { evicted: number; tooLong: number; unread: number };
  /** Spans that were not examined. */
  missed: number;
}

/** Event `end`: the last one. */
export interface TailEnd {
  reason: string;
}
