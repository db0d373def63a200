import { describe, expect, it } from 'vitest';
import { EventParser } from '../../../api/events';
import type { Heatmap, TraceSummary } from '../../../api/types';
import { delayOf } from './feed';
import { LiveHeat, step } from './heat';
import { addRow, maxRows, noRows, releaseRows } from './rows';

const trace = (id: number, ms: number, duration = 1e6, errors = 0): TraceSummary => ({
  traceID: String(id), match: '0', rootService: 'web', rootName: 'x', start: `${ms}000000`, duration, spans: 1, errors, orphans: 0, services: [],
});

describe('events', () => {
  it('joins parts, and leaves out comments', () => {
    const p = new EventParser();
    expect(p.push(':\n\nevent: st')).toEqual([]);
    expect(p.push('atus\ndata: {"a":1}\n')).toEqual([]);
    expect(p.push('\nevent: trace\ndata: x: y\n\nevent: end')).toEqual([{ name: 'status', data: '{"a":1}' }, { name: 'trace', data: 'x: y' }]);
  });

  it('is bounded', () => {
    const p = new EventParser();
    expect(() => { for (let i = 0; i < 100; i++) p.push('x'.repeat(1 << 16)); }).toThrow('ended early');
  });
});

describe('back-off', () => {
  it('doubles up to 30 s, and respects the server', () => {
    expect([0, 1, 2, 5, 50].map((n) => delayOf(n, 0, 0))).toEqual([1000, 2000, 4000, 30_000, 30_000]);
    expect(delayOf(3, 0, 1)).toBeCloseTo(6400);
    expect(delayOf(0, 12, 1)).toBe(12_000);
  });
});

describe('rows', () => {
  it('adds at the top, replaces in place, and is bounded', () => {
    let rows = noRows;
    for (let i = 0; i < maxRows + 20; i++) rows = addRow(rows, trace(i, i), false);
    expect(rows.shown.length).toBe(maxRows);
    expect(rows.shown[0].traceID).toBe(String(maxRows + 19));
    rows = addRow(rows, trace(maxRows, 0, 5), false);
    expect(rows.shown.findIndex((t) => t.duration === 5)).toBe(19);
    expect(rows.shown.length).toBe(maxRows);
    rows = addRow(rows, trace(999, maxRows + 17), false); // it began before the newest
    expect(rows.shown.findIndex((t) => t.traceID === '999')).toBe(2);
  });

  it('holds the newest, and counts all', () => {
    let rows = addRow(noRows, trace(1, 1), false);
    rows = addRow(rows, trace(1, 1, 7), true); // a row again is not a new one
    for (let i = 2; i < 2 * maxRows + 2; i++) rows = addRow(rows, trace(i, i), true);
    expect(rows.shown.map((t) => t.duration)).toEqual([1e6]);
    expect([rows.held, rows.waiting.length]).toEqual([2 * maxRows, maxRows]);
    rows = releaseRows(rows);
    expect([rows.shown.length, rows.waiting.length, rows.held, rows.shown[0].traceID]).toEqual([maxRows, 0, 0, String(2 * maxRows + 1)]);
    expect(releaseRows(rows)).toBe(rows);
  });
});

describe('heat', () => {
  const now = 1_000_000 * step;

  it('slides, and forgets what is too old', () => {
    const heat = new LiveHeat();
    heat.add(trace(1, now, 1e6), 8);
    heat.add(trace(2, now + 1, 1e6, 1), 8);
    const h = heat.at(now);
    expect([h.estimatedSpans, h.estimatedErrors, h.cells.column[0], h.cells.count[0], h.cells.bucket[0]]).toEqual([16, 8, h.columns - 1, 16, Math.floor(Math.log2(1e6) * 8)]);
    expect(heat.at(now + 5 * step).cells.column[0]).toBe(h.columns - 6);
    expect(heat.at(now + h.columns * step).estimatedSpans).toBe(0);
    expect(heat.at(now).estimatedSpans).toBe(0);
  });

  it('moves a trace that comes again', () => {
    const heat = new LiveHeat();
    heat.add(trace(1, now, 1e6), 4);
    heat.add(trace(1, now, 1e9, 1), 2);
    const h = heat.at(now);
    expect(h.cells.count).toEqual([2]);
    expect(h.exemplars.duration).toEqual([1e9]);
    expect(h.estimatedErrors).toBe(2);
  });

  it('begins with the counts of the server, scaled', () => {
    const heat = new LiveHeat();
    const { start } = LiveHeat.window(now);
    const seed = { ...heat.at(now), start, columns: 149, share: 0.5, cells: { column: [148], bucket: [160], count: [3], errors: [1] } } as Heatmap;
    heat.seed(seed);
    heat.add(trace(1, now - step, 1e6), 1); // counted already
    heat.add(trace(2, now, 1e6), 1);
    expect(heat.at(now).estimatedSpans).toBe(7);
    expect(heat.at(now).cells.column).toEqual([148, 149]);
  });

  it('is bounded', () => {
    const heat = new LiveHeat();
    for (let i = 0; i < 20_000; i++) heat.add(trace(i, now + i * 100, 1e3 * (1 + (i % 100))), 1);
    const h = heat.at(now + 20_000 * 100);
    expect(h.exemplars.traceID.length).toBeLessThanOrEqual(300);
    expect(h.cells.column.length).toBeLessThan(150 * 100);
  });
});
