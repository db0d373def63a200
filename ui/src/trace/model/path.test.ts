import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { buildModel } from './build';
import { criticalPath, gapShare, isAsync, overlapShare } from './path';
import { deepOutline, largeOutline, outlineOf, randomOutline, seeded, span, type Sample } from './samples';
import { sentenceText } from './sentence';
import { flag, type TraceModel } from './types';

const model = (...tops: Sample[]): TraceModel => buildModel(outlineOf(...tops), [], true);

/** Segments as text: `a 0-10`, gaps in brackets. */
function text(m: TraceModel, root = -1): string {
  const p = criticalPath(m, root);
  const one = (i: number): string => `${p.span[i] < 0 ? 'nothing' : m.names[m.name[p.span[i]]]} ${p.from[i]}-${p.to[i]}`;
  return Array.from(p.span, (_, i) => (p.gap[i] ? `[${one(i)}]` : one(i))).join(', ');
}

describe('critical path', () => {
  it('gives the time of a span to its children', () => {
    expect(text(model(span('a', 0, 100, { children: [span('b', 10, 30), span('c', 40, 50)] })))).toBe('a 0-10, b 10-40, c 40-90, a 90-100');
  });
  it('follows the child that ends last among those that overlap', () => {
    expect(text(model(span('a', 0, 100, { children: [span('b', 0, 60), span('c', 20, 80), span('d', 5, 15)] })))).toBe('a 0-5, d 5-20, c 20-100');
  });
  it('ignores small overlaps', () => {
    expect(text(model(span('a', 0, 200, { children: [span('b', 0, 100), span('c', 98, 102)] })))).toBe('b 0-98, c 98-200');
    expect(text(model(span('a', 0, 200, { children: [span('b', 0, 100), span('c', 97, 103)] })))).toBe('a 0-97, c 97-200');
  });
  it('names gaps between children in which nothing runs', () => {
    const m = model(span('a', 0, 100, { children: [span('b', 0, 40), span('c', 60, 40)] }));
    expect(text(m)).toBe('b 0-40, [a 40-60], c 60-100');
    const busy = model(span('a', 0, 100, { children: [span('b', 0, 40), span('x', 30, 35), span('c', 60, 40)] }));
    expect(text(busy)).toBe('b 0-40, a 40-60, c 60-100');
    const short = model(span('a', 0, 1000, { children: [span('b', 0, 495), span('c', 500, 500)] }));
    expect(text(short)).toBe('b 0-495, a 495-500, c 500-1000');
  });
  it('cuts children that end after their parent or start before it while it runs', () => {
    expect(text(model(span('a', 10, 90, { children: [span('b', 0, 30), span('c', 50, 500)] })))).toBe('b 0-10, b 10-30, [a 30-50], c 50-100, c 100-550');
    expect(text(model(span('a', 0, 100, { children: [span('b', 50, 100, { children: [span('c', 60, 90), span('d', 120, 5)] })] })))).toBe('a 0-50, b 50-60, c 60-100, c 100-150');
  });
  it('goes on after the root, with idle time where no span runs', () => {
    const consume = span('consume', 150, 50, { kind: 5, service: 'mail' });
    const m = model(span('a', 0, 100, { kind: 2, children: [span('b', 40, 60), consume] }));
    expect(text(m)).toBe('a 0-40, b 40-100, nothing 100-150, consume 150-200');
    expect([m.idle, m.duration]).toEqual([50, 200]);
    const several = [span('b', 20, 20, { kind: 5, service: 'b' }), span('c', 5, 45), span('d', 40, 40)];
    expect(text(model(span('a', 0, 10, { children: several })))).toBe('a 0-5, c 5-10, c 10-40, d 40-80');
  });
  it('does not wait for messages that other services process', () => {
    const sent = span('consume', 20, 79, { kind: 5, service: 'mail' });
    expect(text(model(span('a', 0, 100, { kind: 2, children: [sent] })))).toBe('a 0-100');
    expect(text(model(span('a', 0, 100, { kind: 4, children: [sent] })))).toBe('a 0-20, consume 20-99, a 99-100');
    expect(text(model(span('a', 0, 100, { kind: 5, service: 'mail', children: [sent] })))).toBe('a 0-20, consume 20-99, a 99-100');
  });
  it('joins several roots, and prefers them to spans with missing parents', () => {
    expect(text(model(span('a', 0, 10), span('b', 30, 10)))).toBe('a 0-10, nothing 10-30, b 30-40');
    expect(text(model(span('a', 0, 50), span('b', 30, 70)))).toBe('a 0-30, b 30-100');
    expect(text(model(span('a', 0, 10), span('b', 5, 35, { flags: flag.orphan })))).toBe('a 0-10, b 10-40');
    expect(text(model(span('b', 30, 10, { flags: flag.orphan })))).toBe('b 0-10');
  });
  it('of a subtree', () => {
    expect(text(model(span('a', 0, 100, { children: [span('b', 10, 30, { children: [span('c', 20, 10)] })] })), 1)).toBe('b 10-20, c 20-30, b 30-40');
  });
  it('of a trace without duration', () => {
    const m = model(span('a', 0, 0));
    expect(m.path.span).toHaveLength(0);
    expect(sentenceText(m)).toBe('0');
  });

  it('partitions the interval and equals a simple reference on random traces', () => {
    const random = seeded(1);
    for (let k = 0; k < 2000; k++) {
      const m = buildModel(randomOutline(random, 1 + Math.floor(random() * 25)), [], true);
      check(m);
      expect(Array.from(m.path.span, (s, i) => [s, m.path.from[i], m.path.to[i], m.path.gap[i]])).toEqual(reference(m));
    }
  });

  it('equals that of the server, which explains differences by it', () => {
    const shared = new URL('../../../../pipeline/tracestore/callpath/testdata/critical-paths.ndjson', import.meta.url);
    const traces = readFileSync(shared, 'utf8').trim().split('\n').map((line) => JSON.parse(line) as SharedTrace);
    expect(traces.length).toBeGreaterThan(50);
    for (const t of traces) {
      const m = model(...samplesOf(t, -1));
      const own = t.own.map(() => 0);
      let nothing = 0;
      m.path.span.forEach((s, i) => {
        const time = m.path.to[i] - m.path.from[i];
        if (s < 0) nothing += time;
        else own[s] += time;
      });
      expect({ own, nothing }).toEqual({ own: t.own, nothing: t.nothing });
    }
  });

  // TestCriticalPathOfManyGaps of the server expects the same numbers.
  it('looks a limited number of times at a deep chain that carries the time of many gaps between roots', () => {
    const roots = 3000;
    const depth = 1000;
    const all = <T>(of: (i: number) => T): T[] => Array.from({ length: roots + depth }, (_, i) => of(i));
    const path = criticalPath({
      parent: Int32Array.from(all((i) => (i <= roots ? -1 : i - 1))),
      subtree: Int32Array.from(all((i) => (i < roots ? 1 : roots + depth - i))),
      start: Float64Array.from(all((i) => (i < roots ? 2 * i : 0))),
      end: Float64Array.from(all((i) => (i < roots ? 2 * i + 1 : 2 * roots - 1))),
      flags: Uint16Array.from(all((i) => (i < roots ? flag.root : i === roots ? flag.orphan : 0))),
      kind: new Uint8Array(roots + depth),
      service: new Int32Array(roots + depth),
    } as unknown as TraceModel);
    const own = new Map<number, number>();
    path.span.forEach((s, i) => own.set(Math.max(-1, s - roots), (own.get(Math.max(-1, s - roots)) ?? 0) + path.to[i] - path.from[i]));
    expect(Object.fromEntries(own)).toEqual({ '-1': 3000, 999: 525, 550: 1, 0: 2473 });
  });

  it('of a deep and of a wide trace', () => {
    check(buildModel(deepOutline(20_000), [], true));
    check(buildModel(largeOutline(4000), [], true));
  });
});

/** Segments follow each other, are of spans that run, and are found by span. */
function check(m: TraceModel): void {
  const { path } = m;
  for (let i = 0; i < path.span.length; i++) {
    if (i > 0) expect(path.from[i]).toBe(path.to[i - 1]);
    expect(path.to[i]).toBeGreaterThan(path.from[i]);
    const s = path.span[i];
    if (s < 0) continue;
    if (path.from[i] < m.start[s] || path.to[i] > m.end[s]) throw new Error(`segment ${i} is outside span ${s}`);
    if (!path.bySpan.subarray(path.offset[s], path.offset[s + 1]).includes(i)) throw new Error(`segment ${i} is not listed for span ${s}`);
  }
  if (m.duration > 0) expect([path.from[0], path.to[path.to.length - 1]]).toEqual([0, m.duration]);
  expect(path.span.reduce((idle, s, i) => idle + (s < 0 ? path.to[i] - path.from[i] : 0), 0)).toBe(m.idle);
  expect(m.sentence.reduce((t, p) => t + p.share, 0)).toBeCloseTo(m.idle < m.duration ? 1 : 0, 9);
}

/** A trace with own times that the server calculated. `nothing` is the time between spans without parent. */
interface SharedTrace {
  parent: number[];
  root: boolean[];
  start: number[];
  duration: number[];
  kind: number[];
  service: string[];
  own: number[];
  nothing: number;
}

/** The children of a span of a shared trace, or the spans without parent. */
function samplesOf(t: SharedTrace, parent: number): Sample[] {
  return [...t.parent.keys()].filter((i) => t.parent[i] === parent).map((i) => span('op', t.start[i], t.duration[i], {
    service: t.service[i], kind: t.kind[i], flags: parent >= 0 ? 0 : t.root[i] ? flag.root : flag.orphan, children: samplesOf(t, i),
  }));
}

type Segment = [number, number, number, number];

/** Spans by end, the last one first. */
function byEnd(m: TraceModel, list: number[]): number[] {
  return list.slice().sort((a, b) => m.end[b] - m.end[a] || m.start[a] - m.start[b]);
}

/** Looks at each moment for the child to follow, by comparing all spans with all. */
function reference(m: TraceModel): Segment[] {
  const tops = [...m.roots].filter((r) => m.flags[r] & flag.root);
  const of = tops.length ? tops : [...m.roots];
  const all = [...m.parent.keys()];
  const runs = (s: number, at: number): boolean => m.start[s] < at && m.end[s] >= at;
  const first = (list: number[]): number => list.reduce((best, s) => (best < 0 || m.start[s] < m.start[best] ? s : best), -1);
  const onTop: Segment[] = []; // what is on top, from the end
  for (let until = m.duration; until > 0;) {
    const root = first(byEnd(m, of).filter((s) => runs(s, until)));
    const other = first(byEnd(m, all).filter((s) => runs(s, until) && !(m.parent[s] >= 0 && m.start[s] >= m.start[m.parent[s]] && m.end[s] <= m.end[m.parent[s]])));
    const ends = (root >= 0 ? [] : other >= 0 ? of : all).map((s) => m.end[s]).filter((e) => e < until);
    const begin = Math.max(0, ...ends, root >= 0 ? m.start[root] : other >= 0 ? m.start[other] : 0);
    onTop.push([root >= 0 ? root : other, begin, until, 0]);
    until = begin;
  }
  const minGap = gapShare * (m.duration - m.idle);
  const walk = (parent: number, children: number[], a: number, b: number): Segment[] => {
    const runs = children.map((c) => ({ c, from: Math.max(a, m.start[c]), to: Math.min(b, m.end[c]) })).filter((r) => r.from < r.to);
    const out: Segment[] = [];
    let until = b;
    for (;;) {
      const next = runs.filter((r) => r.to - until <= overlapShare * (r.to - r.from) && r.from < until).sort((x, y) => y.to - x.to || m.start[x.c] - m.start[y.c])[0];
      const last = next ? Math.min(next.to, until) : a;
      const busy = runs.some((r) => r !== next && r.from < until && r.to > until);
      const gap = next !== undefined && until < b && until - last >= minGap && !busy;
      if (last < until) out.unshift([parent, last, until, gap ? 1 : 0]);
      if (!next) return out;
      out.unshift(...walk(next.c, childrenOf(next.c), next.from, last));
      until = next.from;
    }
  };
  const childrenOf = (p: number): number[] => [...m.parent.keys()].filter((c) => m.parent[c] === p && !isAsync(m, c));
  return onTop.reverse().flatMap(([s, a, b]): Segment[] => (s < 0 ? [[s, a, b, 0]] : walk(s, childrenOf(s), a, b)));
}
