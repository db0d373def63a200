// The model of a trace, as the worker builds it and the trace page reads it.
//
// Functions on it, all pure and fast enough for the main thread:
// span.ts: spanID, findSpan, durationOf, shownService, operation, kindOf, warningsOf, nextOf
// rows.ts: visibleRows(model, options): Rows; reveal(model, options, span): Set<number> (new `toggled` that shows the span)
// minimap.ts: minimap(model, columns, lanes, times?): Minimap; time-scale.ts: plainScale, brokenScale, placeOf, timeOf
// path.ts: criticalPath(model, root?): CriticalPath; pathStrip(model, columns, times?): PathStrip; sentence.ts: sentenceText(model): string
// ../client.ts: serverSource(traceID): TraceSource; class Files for opened files

import type { AttributeKeys, Nanos, SpanDetail } from '../../api/types';
import type { Comparison } from '../../compare/types';

/** Bits of `TraceModel.flags`. The first four are those of the outline. */
export const flag = {
  error: 1,
  root: 2,
  /** The parent is not in the trace, or is a descendant. */
  orphan: 4,
  /** The recorded start is before that of the parent. */
  early: 8,
  /** A descendant has an error. */
  errorBelow: 16,
  /** Its times are corrected for clock skew. */
  shifted: 32,
  /** It has warnings. */
  warned: 64,
} as const;

/** Names of `TraceModel.kind`, the numbers of OTLP. */
export const kindNames = ['', 'internal', 'server', 'client', 'producer', 'consumer'] as const;

/**
 * A trace as columns with one element for each span, depth first: the subtree of span i is i to i+subtree[i]-1.
 * Its first child is i+1 (if subtree[i] > 1), the next sibling of child c is c+subtree[c] (if below i+subtree[i]).
 * Times are nanoseconds relative to `begin`, corrected for clock skew if `skew` is set.
 */
export interface TraceModel {
  traceID: string;
  /** First start; the other times are relative to it. */
  begin: Nanos;
  /** From the first start to the latest end. */
  duration: number;
  /** Whether times are corrected for clock skew. */
  skew: boolean;
  spans: number;
  services: string[];
  names: string[];
  /** Index of the parent, or -1. */
  parent: Int32Array;
  /** 0 for spans without parent. */
  depth: Int32Array;
  /** Number of spans in the subtree, with the span itself. */
  subtree: Int32Array;
  start: Float64Array;
  end: Float64Array;
  /** Index in `services`. */
  service: Int32Array;
  /** Index in `names`. */
  name: Int32Array;
  kind: Uint8Array;
  /** See `flag`. */
  flags: Uint8Array;
  /** 8 bytes for each span. See `spanID` and `findSpan`. */
  ids: Uint8Array;
  /** Called service without spans of its own, as index in `services`, or -1. */
  peer: Int32Array;
  /** Number of links. */
  links: Int32Array;
  /** Events of span i: eventFirst[i] to eventFirst[i+1]-1 of the event columns. */
  eventFirst: Int32Array;
  /** Relative to the start of the span. */
  eventTime: Float64Array;
  /** Index in `names`. */
  eventName: Int32Array;
  /** 1 for exceptions. */
  eventException: Uint8Array;
  /** Spans with warnings, ascending, and their texts. A span can occur more than once. */
  warningSpan: Int32Array;
  warningText: string[];
  /** Spans without parent. */
  roots: Int32Array;
  groups: Groups;
  path: CriticalPath;
  /** Nanoseconds in which no span runs. */
  idle: number;
  sentence: Part[];
  facts: Facts;
}

/** Sets of at least `minGroup` siblings with the same service and operation. */
export interface Groups {
  /** Group of each span, or -1. */
  of: Int32Array;
  /** Members of group g: members[offset[g]] to members[offset[g+1]-1], ascending. */
  offset: Int32Array;
  members: Int32Array;
  /** Durations in nanoseconds, by group. */
  sum: Float64Array;
  p50: Float64Array;
  max: Float64Array;
  /** Members with an error, or with an error below them. */
  errors: Int32Array;
}

/** Segments of the critical path. They follow each other without overlap from the first start to the last end. */
export interface CriticalPath {
  /** Span whose time the segment is. -1: idle, no span runs. */
  span: Int32Array;
  from: Float64Array;
  to: Float64Array;
  /** 1: gap, the span waits for nothing that was recorded. */
  gap: Uint8Array;
  /** Segments of span i: bySpan[offset[i]] to bySpan[offset[i+1]-1]; of its subtree: bySpan[offset[i]] to bySpan[offset[i+subtree[i]]-1]. */
  offset: Int32Array;
  bySpan: Int32Array;
}

/** A part of the sentence about the critical path. */
export interface Part {
  kind: 'service' | 'waiting' | 'gap' | 'others';
  /** Names the part in URLs, the same in every language: "service:payment", "waiting:redis", "gap", "others". */
  key: string;
  /** Service or peer as index in `services`, -1 for gaps and others. */
  service: number;
  /** Number of services and peers in `others`, else 1. */
  count: number;
  /** Nanoseconds on the critical path. */
  time: number;
  /** 0 to 1, of the time in which spans run. */
  share: number;
  /** Text after the share: "payment", "waiting on redis", "gaps", "in 10 others". */
  text: string;
  /** Spans with segments of this part, ascending. */
  spans: Int32Array;
}

/** What the header of the page says. */
export interface Facts {
  /** Services that have spans. */
  services: number;
  /** Number of levels. */
  depth: number;
  /** Spans with an error, in order. */
  errors: Int32Array;
  events: number;
  /** Spans without a root: their parents are missing. */
  orphans: Int32Array;
  /** What can have caused that parents or other spans are missing, most likely first. */
  causes: Cause[];
  /** Clock-skew correction by service, largest first. `shift` is the largest of the service. Empty if there is none. */
  skew: { service: number; shift: number; spans: number }[];
  /** The trace may still receive spans. */
  growing: boolean;
  /** Spans are left out because the trace exceeds the maximum size. */
  cut: boolean;
  /** Messages of the server about missing spans. */
  messages: string[];
}

/** What is usual for the spans of a trace. Durations are nanoseconds. */
export interface Usual {
  /** Operation of each span as index of the lists below, or -1 if its durations are not known. */
  of: Int32Array;
  p50: Float64Array;
  p95: Float64Array;
  p99: Float64Array;
  calls: Float64Array;
  /** First bucket with calls, and the calls of it and of those after it. Bucket b begins at 2^(b/8) ns. */
  bucket: number[];
  counts: number[][];
  /** By span: 1 above p99, 2 above p99 and the cause: spans below it do not explain it. */
  mark: Uint8Array;
  /** The calls started from `start` to `end`. */
  start: Nanos;
  end: Nanos;
}

/** What is usual, with texts for users. */
export interface UsualTexts extends Usual {
  /** `p99.6`, or "" if too few calls are known. */
  percentile: (span: number) => string;
  /** A sentence for a tooltip, or "". */
  text: (span: number) => string;
}

/** Why spans can be missing, and a sentence about it. */
export interface Cause {
  kind: 'growing' | 'cut' | 'unreadable' | 'service' | 'root' | 'sampling';
  text: string;
}

/** What determines the rows. */
export interface RowOptions {
  /** Spans (index) and groups (~index) whose fold state differs from the default. */
  toggled: ReadonlySet<number>;
  /** Deepest unfolded level, -1 for the default. */
  level: number;
  /** Minimum duration of shown spans in nanoseconds. Ancestors of shown spans are shown. */
  min: number;
  /** Spans to show (with their ancestors), ascending, or null for all. Groups are not folded then. */
  only: Int32Array | null;
  /** Span that is shown as root, or -1. */
  root: number;
}

/** Visible rows. */
export interface Rows {
  /** Span, or ~group for the row of a group. */
  row: Int32Array;
  /** Level, 0 for roots and the re-rooted span. Members of an open group are one level below its row. */
  level: Int32Array;
  /** See `fold`. */
  fold: Uint8Array;
  /** Number of spans that are hidden below the row: folded, too short or without a match. */
  hidden: Int32Array;
  /** Row of each span, or -1 - row of the visible row that hides it; `noRow` if outside the root or filtered out at the top. */
  rowOf: Int32Array;
  /** The default folded subtrees that are shorter than this many nanoseconds, 0 if it did not. */
  foldedBelow: number;
}

/** `Rows.rowOf` of spans that no row contains. */
export const noRow = -0x80000000;

/** Values of `Rows.fold`. */
export const fold = { leaf: 0, open: 1, folded: 2 } as const;

/** What is derived from the times of all spans, on demand. */
export interface Extras {
  /** Row of each span in the flame graph: below that of its parent; spans of a lane do not overlap. */
  lane: Int32Array;
  lanes: number;
  /** Time of each span that no child covers, in nanoseconds. */
  self: Float64Array;
}

/** Values of one attribute. */
export interface AttributeValues {
  values: string[];
  /** Index in `values` for each span, or -1 if the span does not have it. */
  value: Int32Array;
}

/** Answer of a search within the trace. */
export interface FindResult {
  /** Matching spans, ascending. */
  spans: Int32Array;
  /** Attributes were searched, too. */
  complete: boolean;
  /** Why attributes were not searched, or "". */
  message: string;
}

/** Where a trace comes from: a server or a file. All methods reject with an Error that can be shown. */
export interface TraceSource {
  kind: 'server' | 'file';
  traceID: string;
  /** Name of the file, or "". */
  file: string;
  /** Loads the trace. Again: the newer state, or null if nothing changed. */
  load(skew: boolean, signal?: AbortSignal): Promise<TraceModel | null>;
  /** The loaded trace with or without skew correction, without asking the server. */
  withSkew(skew: boolean): Promise<TraceModel>;
  /** Spans in full, by hexadecimal id. */
  details(ids: string[], signal?: AbortSignal): Promise<SpanDetail[]>;
  /** Searches the loaded trace. `onResult` is called at once with what the outline holds, and again when attributes were searched. */
  find(q: string, onResult: (result: FindResult) => void, signal?: AbortSignal): Promise<void>;
  /** What views beside the timeline need of every span of the loaded trace. */
  extras(): Promise<Extras>;
  /** Keys of the attributes of the loaded trace. */
  keys(signal?: AbortSignal): Promise<AttributeKeys>;
  /** Values of an attribute of the loaded trace: `span.KEY` or `resource.KEY`. */
  values(field: string, signal?: AbortSignal): Promise<AttributeValues>;
  /** Matches the spans of two traces, in the worker. */
  compare(a: TraceModel, b: TraceModel): Promise<Comparison>;
  /** Stops the worker. */
  close(): void;
}

/** A trace of a file. */
export interface FileTrace {
  traceID: string;
  file: string;
  rootService: string;
  rootName: string;
  start: Nanos;
  /** Nanoseconds. */
  duration: number;
  spans: number;
  errors: number;
  services: number;
  orphans: number;
}

/** What was read from files. */
export interface FileContent {
  /** Newest first. */
  traces: FileTrace[];
  /** Files or parts of files that were not read, and why. */
  problems: { file: string; text: string }[];
}

/** All spans reduced to pixels: lanes * columns cells, lane by lane. The deepest span of a lane wins. */
export interface Minimap {
  columns: number;
  lanes: number;
  /** Index of the shown service, or -1 for nothing. */
  service: Int32Array;
  /** 1 where a span with an error starts. */
  error: Uint8Array;
}

/** The critical path on the time axis, one cell for each pixel column. */
export interface PathStrip {
  /** Index of the shown service, -1: nothing. */
  service: Int32Array;
  /** 1: gap. */
  gap: Uint8Array;
}
