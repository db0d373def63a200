import { describe, expect, it } from 'vitest';
import { around, forURL, limit, pan, zoomBy } from './zoom';
import { labelGap, placeLabel, textWidth } from './labels';
import { areaHeight, maxHeight, rowAt, scrollToRow, windowAt, type List } from './rowwindow';
import { maxSticky, stickyRows } from './sticky';
import { roundStep, tickLabel, ticks } from './ticks';

const thin = '\u202f';

describe('ticks', () => {
  it.each([[3, 5], [1, 1], [2.2, 5], [21, 25], [240e6, 250e6], [260e6, 500e6], [1.2e9, 2e9], [16e9, 30e9], [61e9, 120e9], [3e14, 345600e9]])('rounds %d up to %d', (least, step) => {
    expect(roundStep(least)).toBe(step);
  });

  it('places the ticks of the whole trace', () => {
    expect(ticks(0, 1842e6, 638).map((t) => t.label)).toEqual(['0', ...[250, 500, 750].map((n) => `${n}${thin}ms`), `1${thin}s`, `1.25${thin}s`, `1.5${thin}s`, `1.75${thin}s`]);
  });

  it('keeps a distance', () => {
    for (const [from, to, width] of [[0, 1e3, 300], [5e8, 5.0001e8, 900], [0, 9e13, 1200], [0, 7, 800]]) {
      const list = ticks(from, to, width);
      for (let i = 1; i < list.length; i++) expect(((list[i].at - list[i - 1].at) / (to - from)) * width).toBeGreaterThanOrEqual(80 - 1e-6);
    }
  });

  it('tells neighbors apart in a zoomed trace', () => {
    const labels = ticks(1.234e9, 1.2341e9, 900).map((t) => t.label);
    expect(new Set(labels).size).toBe(labels.length);
    expect(labels[1]).toBe(`1.23401${thin}s`);
    expect(tickLabel(1.5e6, 100)).toBe(`1.5${thin}ms`);
    const [hours, s] = [12_000, 1e9];
    expect(tickLabel(hours * s, 600 * s)).toBe(`3${thin}h 20${thin}m`);
    expect(tickLabel((hours + 2) * s, 2 * s)).toBe(`3${thin}h 20${thin}m 02${thin}s`);
    expect(tickLabel((hours + 2.25) * s, 0.05 * s)).toBe(`3${thin}h 20${thin}m 02.25${thin}s`);
    expect(tickLabel(305.5 * s, 0.1 * s)).toBe(`5${thin}m 05.5${thin}s`);
    expect(tickLabel(300 * s, 0.1 * s)).toBe(`5${thin}m 00${thin}s`);
    expect(tickLabel(300 * s, 10 * s)).toBe(`5${thin}m 00${thin}s`);
    expect(tickLabel(90_000 * s, 3600 * s)).toBe(`1${thin}d 01${thin}h`);
    expect(tickLabel(90_060 * s, 60 * s)).toBe(`1${thin}d 01${thin}h 01${thin}m`);
  });

  it('has none without extent', () => {
    expect(ticks(5, 5, 100)).toEqual([]);
    expect(ticks(0, 5, 0)).toEqual([]);
  });
});

describe('labels', () => {
  it('prefers right, then left, then inside', () => {
    expect(placeLabel(10, 20, 50, 500)).toEqual({ side: 'right', at: 20 + labelGap });
    expect(placeLabel(400, 480, 50, 500)).toEqual({ side: 'left', at: 400 - labelGap - 50 });
    expect(placeLabel(5, 495, 50, 500)).toEqual({ side: 'inside', at: 5 + labelGap + 2 });
    expect(placeLabel(-4, 504, 50, 500).at).toBe(labelGap + 2);
  });

  it('estimates the width of a text', () => {
    expect(textWidth(`520${thin}ms`)).toBeGreaterThan(35);
    expect(textWidth(`520${thin}ms`)).toBeLessThan(50);
  });
});

describe('row window', () => {
  const few: List = { count: 1000, height: 24, view: 480 };
  const many: List = { count: 2_000_000, height: 24, view: 480 };

  it('has the visible rows and some more', () => {
    expect(windowAt(few, 0, 5)).toEqual({ first: 0, last: 25, shift: 0 });
    expect(windowAt(few, 2400, 5)).toEqual({ first: 95, last: 125, shift: 0 });
    expect(windowAt(few, 24000 - 480, 5)).toEqual({ first: 975, last: 1000, shift: 0 });
    expect(windowAt({ ...few, count: 0 }, 0, 5)).toEqual({ first: 0, last: 0, shift: 0 });
  });

  it('limits the height and reaches the last row by ratio', () => {
    expect(areaHeight(few)).toBe(24_000);
    expect(areaHeight(many)).toBe(maxHeight);
    const end = maxHeight - many.view;
    const w = windowAt(many, end, 0);
    expect(w.last).toBe(many.count);
    expect(w.shift + (many.count - 1) * 24).toBeCloseTo(end + many.view - 24, 3);
    expect(windowAt(many, end / 2, 0).first).toBeGreaterThan(999_000);
  });

  it('scrolls only as far as needed', () => {
    expect(scrollToRow(few, 0, 5, 0)).toBe(0);
    expect(scrollToRow(few, 0, 25, 0)).toBe(26 * 24 - 480);
    expect(scrollToRow(few, 2400, 50, 48)).toBe(50 * 24 - 48);
    expect(scrollToRow(few, 2400, 101, 48)).toBe(101 * 24 - 48);
    expect(scrollToRow(few, 0, 500, 0, true)).toBe(500 * 24 - 216);
    expect(scrollToRow(few, 0, 999, 0, true)).toBe(24000 - 480);
  });

  it('shows the wanted row of very many', () => {
    const at = scrollToRow(many, 0, 1_234_567, 0, true);
    const w = windowAt(many, at, 0);
    expect(w.first).toBeLessThanOrEqual(1_234_567);
    expect(w.last).toBeGreaterThan(1_234_567);
    expect(rowAt(many, at, 217)).toBe(1_234_567);
  });
});

describe('sticky ancestors', () => {
  //                       0  1  2  3  4  5  6
  const level = Int32Array.of(0, 1, 2, 2, 1, 0, 1);
  const list: List = { count: 7, height: 24, view: 48 };

  it('pins the ancestors of the first uncovered row', () => {
    expect(stickyRows(level, list, 0)).toEqual([]);
    expect(stickyRows(level, list, 24)).toEqual([0, 1]);
    expect(stickyRows(level, list, 72)).toEqual([0]);
    expect(stickyRows(level, list, 132)).toEqual([5]);
  });

  it('pins the nearest ones of a deep trace', () => {
    const deep = Int32Array.from({ length: 40 }, (_, i) => i);
    const view: List = { count: 40, height: 24, view: 240 };
    expect(stickyRows(deep, view, 492)).toEqual([20, 21, 22, 23, 24]);
    expect(stickyRows(deep, view, 492)).toHaveLength(maxSticky);
    expect(stickyRows(deep, view, 480)).toEqual([]); // the same rows are in their own places
  });
});

describe('zoom', () => {
  it('stays in the trace', () => {
    expect(limit(-0.2, 0.3, 0.01)).toEqual([0, 0.5]);
    expect(limit(0.8, 1.3, 0.01)).toEqual([0.5, 1]);
    expect(limit(0.5, 0.5, 0.1)).toEqual([0.45, 0.55]);
    expect(pan([0.5, 1], 0.5)).toEqual([0.5, 1]);
  });

  it('keeps the point under the pointer', () => {
    const [a, b] = zoomBy([0, 1], 0.5, 0.25, 0.001);
    expect((0.25 - a) / (b - a)).toBeCloseTo(0.25);
    expect(zoomBy([0.4, 0.6], 100, 0.5, 0.001)).toEqual([0, 1]);
  });

  it('surrounds a span and leaves defaults out of the URL', () => {
    const [a, b] = around(0.5, 0.6, 0.001);
    expect(a).toBeLessThan(0.5);
    expect(b).toBeGreaterThan(0.6);
    expect(forURL([0, 1])).toBeNull();
    expect(forURL([0.1, 1])).toEqual([0.1, 1]);
  });
});
