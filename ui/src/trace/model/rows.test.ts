import { describe, expect, it } from 'vitest';
import { buildModel } from './build';
import { minGroup } from './groups';
import { defaultRows, manyRows, reveal, rowOfSpan, visibleRows } from './rows';
import { deepOutline, largeOutline, outlineOf, randomOutline, seeded, span, type Sample } from './samples';
import { fold, noRow, type RowOptions, type Rows, type TraceModel } from './types';

const model = (...tops: Sample[]): TraceModel => buildModel(outlineOf(...tops), [], true);

/** Rows as text: indentation, arrow, name or `name x count`, number of hidden spans. */
function text(m: TraceModel, options: Partial<RowOptions> = {}): string[] {
  const rows = visibleRows(m, { ...defaultRows, ...options });
  return Array.from(rows.row, (r, i) => {
    const arrow = ['', '-', '+'][rows.fold[i]];
    const { offset, members } = m.groups;
    const name = r >= 0 ? m.names[m.name[r]] : `${m.names[m.name[members[offset[~r]]]]} x ${offset[~r + 1] - offset[~r]}`;
    return `${' '.repeat(rows.level[i])}${arrow}${name}${rows.hidden[i] ? ' ' + rows.hidden[i] : ''}`;
  });
}

const tree = (): TraceModel => model(span('a', 0, 100, { children: [span('b', 0, 60, { children: [span('c', 0, 5), span('d', 10, 40, { children: [span('e', 10, 1)] })] }), span('f', 70, 3)] }));
const [a, b, , d, , f] = [0, 1, 2, 3, 4, 5];

describe('rows', () => {
  it('fold and unfold by toggled spans', () => {
    expect(text(tree())).toEqual(['-a', ' -b', '  c', '  -d', '   e', ' f']);
    expect(text(tree(), { toggled: new Set([b]) })).toEqual(['-a', ' +b 3', ' f']);
  });
  it('fold by level, and unfold single spans', () => {
    expect(text(tree(), { level: 1 })).toEqual(['-a', ' +b 3', ' f']);
    expect(text(tree(), { level: 0 })).toEqual(['+a 5']);
    expect(text(tree(), { level: 1, toggled: new Set([b]) })).toEqual(['-a', ' -b', '  c', '  +d 1', ' f']);
  });
  it('hide short spans, but not the ancestors of long ones', () => {
    expect(text(tree(), { min: 5 })).toEqual(['-a 1', ' -b', '  c', '  -d 1']);
    const late = model(span('a', 0, 4, { children: [span('b', 0, 3, { children: [span('c', 0, 50)] }), span('x', 0, 1)] }));
    expect(text(late, { min: 10 })).toEqual(['-a 1', ' -b', '  c']);
  });
  it('show only matching spans and their ancestors', () => {
    expect(text(tree(), { only: Int32Array.of(d) })).toEqual(['-a 1', ' -b 1', '  -d 1']);
    expect(text(tree(), { only: new Int32Array(0) })).toEqual([]);
  });
  it('show one subtree', () => {
    expect(text(tree(), { root: b })).toEqual(['-b', ' c', ' -d', '  e']);
    expect(text(tree(), { root: b, level: 1 })).toEqual(['-b', ' c', ' +d 1']);
  });
  it('say where each span is', () => {
    const rows = visibleRows(tree(), { ...defaultRows, toggled: new Set([b]) });
    expect([...rows.rowOf]).toEqual([0, 1, -2, -2, -2, 2]);
    expect(rowOfSpan(rows, d)).toBe(1);
    const below = visibleRows(tree(), { ...defaultRows, root: b });
    expect([below.rowOf[a], below.rowOf[f], rowOfSpan(below, a)]).toEqual([noRow, noRow, -1]);
  });

  const gets = (n: number): Sample[] => Array.from({ length: n }, (_, i) => [span('get', i * 10, i + 1, { children: [span('in', i * 10, 1)] }), span('set' + i, i * 10 + 5, 1)]).flat();
  it('join at least 20 equal siblings', () => {
    const few = model(span('a', 0, 1000, { children: gets(minGroup - 1) }));
    expect(few.groups.sum).toHaveLength(0);
    const m = model(span('a', 0, 1000, { children: gets(minGroup) }));
    expect(text(m).slice(0, 4)).toEqual(['-a', ' +get x 20 40', ' set0', ' set1']);
    expect([m.groups.sum[0], m.groups.p50[0], m.groups.max[0]]).toEqual([210, 10, 20]);
    expect(text(m, { toggled: new Set([~0]) }).slice(0, 6)).toEqual(['-a', ' -get x 20', '  -get', '   in', '  -get', '   in']);
    expect(text(m, { toggled: new Set([~0]) })).toHaveLength(2 + 2 * 20 + 20);
    expect(text(m, { min: 20 })).toEqual(['-a 20', ' +get x 20 40']);
    expect(text(m, { min: 21 })).toEqual(['-a 60']);
    expect(text(m, { only: Int32Array.of(1) })).toEqual(['-a 58', ' -get 1']);
  });
  it('reveal a span that is folded', () => {
    const m = model(span('a', 0, 1000, { children: gets(minGroup) }));
    const inner = 2;
    for (const options of [{}, { level: 0 }, { level: 1, toggled: new Set([0]) }, { level: 2 }, { root: 0 }]) {
      const o = { ...defaultRows, ...options };
      const rows = visibleRows(m, { ...o, toggled: reveal(m, o, inner) });
      expect(rows.rowOf[inner]).toBeGreaterThan(0);
    }
    expect([...reveal(m, { ...defaultRows, root: 1 }, 3)]).toEqual([]);
  });
  it('fold short subtrees of large traces', () => {
    const m = buildModel(largeOutline(manyRows * 4), [], true);
    const rows = visibleRows(m, defaultRows);
    expect(rows.foldedBelow).toBeCloseTo(m.duration / 1000);
    for (let i = 0; i < rows.row.length; i++) {
      const s = rows.row[i];
      if (s >= 0 && rows.fold[i] !== fold.leaf) expect(rows.fold[i] === fold.folded).toBe(Math.max(...m.end.subarray(s, s + m.subtree[s])) - m.start[s] < rows.foldedBelow);
    }
    const hidden = rows.rowOf.findIndex((r) => r < 0);
    const shown = visibleRows(m, { ...defaultRows, toggled: reveal(m, defaultRows, hidden) });
    expect(shown.row[shown.rowOf[hidden]]).toBe(hidden);
  });
  it('keep spans open whose children outlive them', () => {
    const calls = Array.from({ length: manyRows + 1 }, (_, i) => span('call' + i, i * 1000, 10));
    const m = model(span('root', 0, 50, { children: [...calls, span('short', 0, 40, { children: [span('in', 0, 20)] })] }));
    const rows = visibleRows(m, defaultRows);
    expect(rows.foldedBelow).toBeGreaterThan(50);
    expect([rows.fold[0], rows.row.length]).toEqual([fold.open, m.spans - 1]);
  });
  it('open a group that is all there is below the root', () => {
    const m = model(span('root', 0, 1000, { children: Array.from({ length: 1632 }, (_, i) => span('call', i, 1)) }));
    expect(text(m)).toHaveLength(2 + 1632);
    expect(text(m, { toggled: new Set([~0]) })).toEqual(['-root', ' +call x 1632 1632']);
    const closed = { ...defaultRows, toggled: new Set([~0]) };
    expect(visibleRows(m, { ...closed, toggled: reveal(m, closed, 9) }).rowOf[9]).toBe(10);
  });
  it('of a deep trace', () => {
    const m = buildModel(deepOutline(100_000), [], true);
    expect(visibleRows(m, { ...defaultRows, level: 200_000 }).row).toHaveLength(100_000);
    expect(reveal(m, { ...defaultRows, level: 1 }, 99_999).size).toBe(99_998);
  });
  it('list each span once, on random traces and options', () => {
    const random = seeded(3);
    const upTo = (n: number): number => Math.floor(random() * n);
    for (let k = 0; k < 500; k++) {
      const m = buildModel(randomOutline(random, 2 + upTo(60)), [], true);
      const toggled = new Set(Array.from({ length: upTo(5) }, () => upTo(m.spans)));
      const only = random() < 0.3 ? Int32Array.from(new Set([upTo(m.spans), upTo(m.spans)])).sort() : null;
      const options: RowOptions = { toggled, level: upTo(5) - 1, min: random() < 0.3 ? upTo(40) : 0, only, root: random() < 0.3 ? upTo(m.spans) : -1 };
      check(m, options, visibleRows(m, options));
    }
  });
});

/** Every span below the root is a row, or hidden by one, or filtered out above all rows. */
function check(m: TraceModel, o: RowOptions, rows: Rows): void {
  const hidden = new Int32Array(rows.row.length);
  for (let s = 0; s < m.spans; s++) {
    const at = rows.rowOf[s];
    if (at >= 0) expect(rows.row[at]).toBe(s);
    else if (at !== noRow) hidden[-1 - at]++;
    else if (o.root >= 0) expect(s < o.root || s >= o.root + m.subtree[o.root] || rows.row.length === 0).toBe(true);
    else expect(o.min > 0 || o.only !== null).toBe(true);
  }
  expect(hidden).toEqual(rows.hidden);
  expect(new Set(rows.row).size).toBe(rows.row.length);
}
