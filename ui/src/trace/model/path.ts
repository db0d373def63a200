// The critical path: at each time, the span that the end of the trace waited for.
//
// It is found backwards. From the end of a span, its child that ended last carries the time until
// that child started; before it, the child that ended last before that start; and so on. What no
// child carries is the span's own time. Times of children outside their parent are cut off while a
// root runs. Where none runs, for example after its end, spans that outlive their parents carry the time.
// After maxRepeatedSteps, the rest of the time of such a span is its own.

import { shownService } from './span';
import { plainScale, timeOf } from './time-scale';
import { flag, type CriticalPath, type PathStrip, type TraceModel } from './types';

/** Share of its duration by which a child may overlap with what follows it: clocks and schedulers are not exact. */
export const overlapShare = 0.02;

/**
 * Bounds the work on spans that run in several gaps between roots, which are examined again in each gap. A step is one span, or one of
 * its children, that is examined again.
 */
export const maxRepeatedSteps = 1 << 20;

/** Share of the path from which own time between two children is a gap. */
export const gapShare = 0.01;

/** What the critical path depends on. */
export type Timed = Pick<TraceModel, 'parent' | 'subtree' | 'start' | 'end' | 'flags' | 'kind' | 'service'>;

const consumer = 5;
const producer = 4;

/** Whether the parent does not wait for a span: a message that another service processes. */
export function isAsync(m: Timed, span: number): boolean {
  const p = m.parent[span];
  return p >= 0 && m.kind[span] === consumer && m.kind[p] !== producer && m.service[p] !== m.service[span];
}

/** Finds the critical path of a trace, or of the subtree of `root`. */
export function criticalPath(m: Timed, root = -1): CriticalPath {
  const pieces = topPieces(m, root);
  const running = pieces.reduce((sum, [span, from, to]) => sum + (span < 0 ? 0 : to - from), 0);
  const walk = new Walk(m, gapShare * running);
  walk.run(pieces);
  return walk.finish();
}

/**
 * What is on top at each time, from the last end to the first start: a root while one runs, otherwise a span that runs outside the
 * time of its parent, and -1 where no span runs. If there is no root, spans with missing parents take its place.
 */
function topPieces(m: Timed, root: number): Piece[] {
  const [first, last] = root < 0 ? [0, m.parent.length] : [root, root + m.subtree[root]];
  let from = Infinity;
  let to = -Infinity;
  for (let i = first; i < last; i++) {
    from = Math.min(from, m.start[i]);
    to = Math.max(to, m.end[i]);
  }
  const roots = new Cover(m, topSpans(m, first, last));
  let others: Cover | null = null;
  const pieces: Piece[] = [];
  for (let until = to; until > from;) {
    const [span, begin] = roots.before(until, from);
    if (span >= 0) pieces.push([span, begin, until, 'expand']);
    for (let end = until; span < 0 && end > begin;) {
      others ??= new Cover(m, outsideParent(m, first, last));
      const [other, start] = others.before(end, begin);
      pieces.push([other, start, end, other < 0 ? 'own' : 'expand']);
      end = start;
    }
    until = begin;
  }
  return pieces;
}

/** Spans without parent that count: those that are roots, or if there are none, those whose parents are missing. */
function topSpans(m: Timed, first: number, last: number): number[] {
  const tops: number[] = [];
  for (let i = first; i < last; i += m.subtree[i]) tops.push(i);
  const roots = tops.filter((i) => m.flags[i] & flag.root);
  return roots.length > 0 ? roots : tops;
}

/** Spans that run at a time at which their parent does not. */
function outsideParent(m: Timed, first: number, last: number): number[] {
  const list: number[] = [];
  for (let i = first; i < last; i++) {
    const p = m.parent[i];
    if (p < first || m.start[i] < m.start[p] || m.end[i] > m.end[p]) list.push(i);
  }
  return list;
}

/** Covers time with spans, from the end. */
class Cover {
  private next = 0;
  private best = -1; // the first start of the spans that end at `until` or later

  constructor(private readonly m: Timed, private readonly list: number[]) {
    list.sort((a, b) => m.end[b] - m.end[a] || m.start[a] - m.start[b]);
  }

  /** Of the spans that run just before `until`, the one that started first, and its start; if there is none, -1 and the last end before. Not before `from`. `until` must not increase. */
  before(until: number, from: number): [span: number, begin: number] {
    const { list, m } = this;
    for (; this.next < list.length && m.end[list[this.next]] >= until; this.next++) {
      if (this.best < 0 || m.start[list[this.next]] < m.start[this.best]) this.best = list[this.next];
    }
    if (this.best >= 0 && m.start[this.best] < until) return [this.best, Math.max(m.start[this.best], from)];
    return [-1, this.next < list.length ? Math.max(m.end[list[this.next]], from) : from];
  }
}

/** A piece of time: own time of a span, a gap of it, or a span whose pieces are not found yet. */
type Piece = [span: number, from: number, to: number, what: 'own' | 'gap' | 'expand'];

/** Emits segments from the first to the last. It does not recurse, because traces can be deep. */
class Walk {
  private readonly stack: Piece[] = [];
  private readonly span: number[] = [];
  private readonly from: number[] = [];
  private readonly to: number[] = [];
  private readonly gap: number[] = [];
  private readonly expanded: Uint8Array;
  private repeated = 0; // steps of spans that were expanded before

  constructor(private readonly m: Timed, private readonly minGap: number) {
    this.expanded = new Uint8Array(m.parent.length);
  }

  /** Expands pieces, which are in order from the last to the first. */
  run(pieces: Piece[]): void {
    this.push(pieces);
    for (let piece = this.stack.pop(); piece; piece = this.stack.pop()) {
      const [span, a, b, what] = piece;
      if (what === 'expand' && this.expands(span)) this.split(span, this.children(span, a, b), a, b);
      else this.emit(span, a, b, what === 'gap');
    }
  }

  /** Whether the children of a span may be looked at. */
  private expands(span: number): boolean {
    if (this.expanded[span] && this.repeated >= maxRepeatedSteps) return false;
    this.repeated += this.expanded[span];
    return true;
  }

  /** Children whose time a span can wait for between `from` and `to`. */
  private children(span: number, from: number, to: number): number[] {
    const { subtree, start, end } = this.m;
    const again = this.expanded[span];
    this.expanded[span] = 1;
    const list: number[] = [];
    for (let c = span + 1; c < span + subtree[span]; c += subtree[c]) {
      this.repeated += again;
      if (start[c] < to && end[c] > from && end[c] > start[c] && !isAsync(this.m, c)) list.push(c);
    }
    return list;
  }

  /** Splits the time of a span into that of its children and its own. */
  private split(span: number, children: number[], from: number, to: number): void {
    const { start, end } = this.m;
    if (children.length > 1) children.sort((a, b) => Math.min(end[b], to) - Math.min(end[a], to) || start[a] - start[b]);
    const pieces: Piece[] = [];
    let until = to;
    let skipped = Infinity; // first start of the children that run, but do not carry the time
    for (const c of children) {
      const first = Math.max(start[c], from);
      let last = Math.min(end[c], to);
      if (last - until <= overlapShare * (last - first)) last = Math.min(last, until);
      if (last > until || last <= first) {
        skipped = Math.min(skipped, start[c]);
        continue;
      }
      if (last < until) pieces.push([span, last, until, until < to && until - last >= this.minGap && skipped >= until ? 'gap' : 'own']);
      pieces.push([c, first, last, 'expand']);
      until = first;
    }
    if (until > from) pieces.push([span, from, until, 'own']);
    this.push(pieces);
  }

  private push(pieces: Piece[]): void {
    for (const piece of pieces) this.stack.push(piece);
  }

  private emit(span: number, from: number, to: number, gap: boolean): void {
    this.span.push(span);
    this.from.push(from);
    this.to.push(to);
    this.gap.push(gap ? 1 : 0);
  }

  finish(): CriticalPath {
    const span = Int32Array.from(this.span);
    return {
      span, from: Float64Array.from(this.from), to: Float64Array.from(this.to), gap: Uint8Array.from(this.gap),
      ...segmentsBySpan(span, this.m.parent.length),
    };
  }
}

function segmentsBySpan(span: Int32Array, spans: number): Pick<CriticalPath, 'offset' | 'bySpan'> {
  const offset = new Int32Array(spans + 1);
  for (const s of span) if (s >= 0) offset[s + 1]++;
  for (let i = 0; i < spans; i++) offset[i + 1] += offset[i];
  const next = offset.slice();
  const bySpan = new Int32Array(offset[spans]);
  for (let i = 0; i < span.length; i++) if (span[i] >= 0) bySpan[next[span[i]]++] = i;
  return { offset, bySpan };
}

/** The critical path between two places of a scale as pixels. In each column, the service with the most time wins; gaps count as one. */
export function pathStrip(m: TraceModel, columns: number, times = plainScale(m.duration), from = 0, to = times.length): PathStrip {
  const strip: PathStrip = { service: new Int32Array(columns).fill(-1), gap: new Uint8Array(columns) };
  const { path } = m;
  const step = (to - from) / columns;
  if (!(step > 0)) return strip;
  const sums = new Map<number, number>(); // time in the current column by service; `gaps` for gaps
  for (let c = 0, i = 0; c < columns; c++) {
    const begin = timeOf(times, from + c * step);
    const end = timeOf(times, from + (c + 1) * step);
    sums.clear();
    while (i < path.span.length && path.to[i] <= begin) i++;
    for (let k = i; k < path.span.length && path.from[k] < end; k++) {
      if (path.span[k] < 0) continue; // short spans in idle time can be seen
      const key = path.gap[k] ? gaps : shownService(m, path.span[k]);
      sums.set(key, (sums.get(key) ?? 0) + Math.min(path.to[k], end) - Math.max(path.from[k], begin));
    }
    const most = largest(sums);
    strip.gap[c] = most === gaps ? 1 : 0;
    strip.service[c] = Math.max(-1, most);
  }
  return strip;
}

const gaps = -2;

/** Key with the largest value, -1 if there is none. */
function largest(sums: Map<number, number>): number {
  let most = -1;
  for (const [key, time] of sums) if (most === -1 || time > sums.get(most)!) most = key;
  return most;
}
