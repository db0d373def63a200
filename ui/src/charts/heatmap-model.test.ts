import { describe, expect, it } from 'vitest';
import type { Heatmap } from '../api/types';
import { apart, boxOf, cellsOf, durationAt, durationTicks, finest, gridOf, marginal, quantileRow, rowOf, shadeOf, sumOf, timeTicks } from './heatmap-model';

function answer(cells: [column: number, bucket: number, count: number, errors: number][], columns = 60): Heatmap {
  const pick = (i: number): number[] => cells.map((c) => c[i]);
  return {
    of: 'traces', start: '1795373340000000000', step: 60e9, columns, bucketsPerOctave: 8, spans: 0, errors: 0, share: 1, scanned: 0, estimatedSpans: 0, estimatedErrors: 0,
    cells: { column: pick(0), bucket: pick(1), count: pick(2), errors: pick(3) },
    exemplars: { traceID: [], spanID: [], start: [], duration: [], service: [], name: [], error: [] },
  };
}

describe('heatmap', () => {
  it('keeps every count when buckets share a row', () => {
    const cells = Array.from({ length: 200 }, (_, i): [number, number, number, number] => [i % 60, 100 + i, i + 1, i % 2]);
    const g = gridOf(answer(cells), 60);
    expect(g.rows).toBeLessThanOrEqual(62);
    expect(g.count.reduce((a, b) => a + b)).toBe((200 * 201) / 2);
    expect(g.errors.reduce((a, b) => a + b)).toBe(100);
    for (const ns of [2 ** (100 / 8), 2 ** (299 / 8)]) expect(rowOf(g, ns)).toBeGreaterThanOrEqual(0);
  });

  it('shows an empty grid without cells', () => {
    const g = gridOf(answer([]));
    expect(g.max).toBe(0);
    expect(durationAt(g, 0)).toBeLessThan(durationAt(g, g.rows));
  });

  it('converts cells to boxes and back', () => {
    const g = gridOf(answer([[3, 160, 2, 1], [10, 200, 5, 0], [10, 201, 7, 0]]));
    for (const [a, b] of [[{ column: 3, row: 4 }, { column: 10, row: 20 }], [{ column: 59, row: g.rows - 1 }, { column: 0, row: 0 }], [{ column: 7, row: 7 }, { column: 7, row: 7 }]]) {
      const box = boxOf(g, a, b);
      expect(cellsOf(g, box)).toEqual({
        from: { column: Math.min(a.column, b.column), row: Math.min(a.row, b.row) }, to: { column: Math.max(a.column, b.column), row: Math.max(a.row, b.row) },
      });
    }
    const all = boxOf(g, { column: 0, row: 0 }, { column: 59, row: g.rows - 1 });
    expect(sumOf(g, all)).toEqual({ count: 14, errors: 1 });
    expect(cellsOf(g, { ...all, t0: all.t1 + 1, t1: all.t1 + 2 })).toBeNull();
  });

  it('counts a box of a coarse grid on a fine one', () => {
    const h = answer(Array.from({ length: 200 }, (_, i): [number, number, number, number] => [i % 60, 100 + i, i + 1, i % 2]));
    for (const rows of [24, 46, 60]) {
      const g = gridOf(h, rows);
      const box = boxOf(g, { column: 0, row: 20 }, { column: 59, row: 23 });
      expect(sumOf(gridOf(h, finest), box)).toEqual(sumOf(g, box));
    }
  });

  it('shades by count and by share of errors', () => {
    expect(shadeOf(1, 0, 1000)).toEqual({ hue: 'ok', level: 1 });
    expect(shadeOf(1000, 0, 1000)).toEqual({ hue: 'ok', level: 7 });
    expect(shadeOf(1, 1, 1000)).toEqual({ hue: 'err', level: 3 });
    expect(shadeOf(100, 5, 1000).hue).toBe('mix');
    expect(shadeOf(100, 4, 1000).hue).toBe('ok');
    expect(shadeOf(1, 0, 1).level).toBe(4);
  });

  it('computes quantiles from rows', () => {
    expect(quantileRow([0, 10, 10, 0], 0.5)).toBe(2);
    expect(quantileRow([0, 10, 10, 0], 0.75)).toBe(2.5);
    expect(quantileRow([0, 0], 0.5)).toBeNull();
    const g = gridOf(answer([[0, 160, 1, 0], [1, 160, 3, 0]]));
    expect(marginal(g).reduce((a, b) => a + b)).toBe(4);
    expect(marginal(g, 1, 1).reduce((a, b) => a + b)).toBe(3);
  });

  it('labels the axes', () => {
    const g = gridOf(answer([[0, 160, 1, 0], [0, 230, 3, 0]])); // 1 ms to 450 ms
    expect(durationTicks(g, 216)).toContain(1e7);
    expect(durationTicks(g, 100).every((ns) => Math.log10(ns) % 1 === 0)).toBe(true);
    const ticks = timeTicks(g, 1000);
    expect(ticks.length).toBeGreaterThan(3);
    expect(ticks.length).toBeLessThanOrEqual(10);
    expect(ticks.every((t) => t % 60_000 === 0)).toBe(true);
  });
});

it('keeps the labels of a small selection apart', () => {
  expect(apart([0.2, 0.6], 0.1)).toEqual([0.2, 0.6]);
  expect(apart([0.5], 0.1)).toEqual([0.5]);
  const [low, high] = apart([0.51, 0.49], 0.5);
  expect([low, high].map((x) => x.toFixed(2))).toEqual(['0.75', '0.25']);
});
