// Types of the answer of `explain`. Times are means of the traces of a side in nanoseconds, shares from 0 to 1.

/** How selected traces differ from others. */
export interface Explanation {
  selected: ExplainSide;
  rest: ExplainSide;
  /** With fewer traces on a side, the lists are empty. */
  minTraces: number;
  attributes: {
    /** Number of traces whose attributes were read. */
    traces: number;
    /** Number of keys. */
    tested: number;
    differ: number;
    omitted: boolean;
    lines: AttributeLine[];
  };
  time: { differ: number; lines: TimeLine[] };
  shape: { lines: ShapeLine[] };
  paths: CallPaths;
}

/** The traces of a side. */
export interface ExplainSide {
  /** Number of examined traces. */
  traces: number;
  /** Number of all traces; an estimate unless `exact`. */
  estimated: number;
  exact: boolean;
  /** Examined share. */
  share: number;
  spans: number;
  failed: number;
  /** Length of the critical path. */
  time: number;
  /** Duration that the selected traces (spans) reach, if they are the slowest ones. */
  least?: number;
}

/** A condition on an attribute. */
export interface AttributeName {
  field: string;
  /** The only service that has the key, or "". */
  service: string;
  op: '=' | 'exists' | 'range';
  /** Of `=`. */
  value: string;
  /** Bounds of a range, inclusive; absent: no bound. */
  low?: number;
  high?: number;
}

/** An attribute of which the selected traces have another share. */
export interface AttributeLine extends AttributeName {
  /** An input may be the cause; an outcome says how a call ended. */
  kind: 'input' | 'outcome';
  /** First and last tenth of the other traces that the range covers. */
  deciles?: [number, number];
  /** Shares of the traces of each side that can be compared: of the same root operation, with a call on which the attribute can be. */
  selected: number;
  rest: number;
  /** Share of all selected traces that can be compared. */
  compared: number;
  /** Estimated number of selected traces. */
  traces: number;
  /** Searches for spans with the attribute, and with another value of its key; "" if there is none. */
  filter: string;
  exclude: string;
  /** Attributes of the same traces. */
  same: AttributeName[];
  /** Index of an earlier line without which this one does not differ; -1: none. */
  with: number;
  values: ValueDurations;
}

/** Durations of the traces with values of a key. Bucket b begins at 2^(b/4) nanoseconds. */
export interface ValueDurations {
  /** Bucket of the first numbers below. */
  first: number;
  values: { text: string; traces: number; selected: number[]; rest: number[] }[];
}

/** An operation whose own time on the critical path differs. */
export interface TimeLine {
  service: string;
  name: string;
  /** Index in `paths`. */
  path: number;
  selected: number;
  rest: number;
  difference: number;
  /** Share of the difference of the critical paths; 0 if they do not differ. */
  share: number;
  filter: string;
}

/** A call path that selected traces have more or less often. */
export interface ShapeLine {
  service: string;
  name: string;
  /** Index in `paths`. */
  path: number;
  selected: Frequency;
  rest: Frequency;
  /** Number of call paths below this one that differ, too. */
  below: number;
  filter: string;
}

/** Share of traces that have a call path, and mean number of calls of all traces. */
export interface Frequency {
  traces: number;
  calls: number;
}

/** Call paths; parents come before their children. */
export interface CallPaths {
  parent: number[];
  service: string[];
  name: string[];
  /** What a call waits for, and which sends no spans; "": nothing. */
  peer: string[];
  selected: PathSide;
  rest: PathSide;
  /** Number of call paths that are left out. */
  omitted: number;
}

/** Means of the traces of a side: own time on the critical path, and number of calls. */
export interface PathSide {
  self: number[];
  calls: number[];
}
