// The critical path: at each time, the span that the end of the trace waited for.
//
// It is found backwards. From the end of a span, its child that ended last carries the time until
// that child started; before it, the child that ended last before that start; and so on. What no
// child carries is the span's own time. Times of children outside their parent are cut off.

import { flag, type CriticalPath, type TraceModel } from './types';

/** Share of its duration by which a child may overlap with what follows it: clocks and schedulers are not exact. */
export const overlapShare = 0.02;

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
  const tops = root >= 0 ? [root] : topSpans(m);
  let from = Infinity;
  let to = -Infinity;
  for (const s of tops) {
    from = Math.min(from, m.start[s]);
    to = Math.max(to, m.end[s]);
  }
  const walk = new Walk(m, gapShare * (to - from));
  if (tops.length > 0 && to > from) walk.run(tops, from, to);
  return walk.finish();
}

/** Spans without parent that count: those that are roots, or if there are none, those whose parents are missing. */
function topSpans(m: Timed): number[] {
  const tops: number[] = [];
  for (let i = 0; i < m.parent.length; i += m.subtree[i]) tops.push(i);
  const roots = tops.filter((i) => m.flags[i] & flag.root);
  return roots.length > 0 ? roots : tops;
}

/** A piece of time: own time of a span, a gap of it, or a span whose pieces are not found yet. */
type Piece = [span: number, from: number, to: number, what: 'own' | 'gap' | 'expand'];

/** Emits segments from the last to the first. It does not recurse, because traces can be deep. */
class Walk {
  private readonly stack: Piece[] = [];
  private readonly span: number[] = [];
  private readonly from: number[] = [];
  private readonly to: number[] = [];
  private readonly gap: number[] = [];

  constructor(private readonly m: Timed, private readonly minGap: number) {}

  run(tops: number[], from: number, to: number): void {
    this.split(-1, tops, from, to);
    for (let piece = this.stack.pop(); piece; piece = this.stack.pop()) {
      const [span, a, b, what] = piece;
      if (what === 'expand') this.split(span, this.children(span, a, b), a, b);
      else this.emit(span, a, b, what === 'gap' || span < 0);
    }
  }

  /** Children whose time a span can wait for between `from` and `to`. */
  private children(span: number, from: number, to: number): number[] {
    const { subtree, start, end } = this.m;
    const list: number[] = [];
    for (let c = span + 1; c < span + subtree[span]; c += subtree[c]) {
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
    while (pieces.length > 0) this.stack.push(pieces.pop()!);
  }

  private emit(span: number, from: number, to: number, gap: boolean): void {
    this.span.push(span);
    this.from.push(from);
    this.to.push(to);
    this.gap.push(gap ? 1 : 0);
  }

  finish(): CriticalPath {
    const span = Int32Array.from(this.span).reverse();
    return {
      span, from: Float64Array.from(this.from).reverse(), to: Float64Array.from(this.to).reverse(), gap: Uint8Array.from(this.gap).reverse(),
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
