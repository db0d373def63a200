import { describe, expect, it } from 'vitest';
import type { AttributeLine, CallPaths } from '../../../api/explain';
import type { Heatmap } from '../../../api/types';
import { withSet } from '../../../query/sets';
import { emptyView, type View } from '../../../shell/url';
import type { Run } from '../run';
import { framesOf, neighbor, scaleOf, shadeOf, totalsOf, treeOrder } from './icicle-model';
import { explainParams, selectedCount, selectedRun, selectedSearch } from './selection';
import { ticks } from './values';
import { callText, differenceText, noteOf, sameOf, valueName } from './words';

// web > stock > db, web > mail; only selected traces call retry.
const paths: CallPaths = {
  parent: [-1, 0, 1, 0, 1], service: ['web', 'stock', 'db', 'mail', 'db'], name: ['GET', 'read', 'select', 'send', 'retry'], peer: ['', '', '', 'smtp', ''], omitted: 0,
  selected: { self: [10, 20, 50, 0, 20], calls: [1, 1, 1, 1, 0.5] }, rest: { self: [10, 20, 10, 10, 0], calls: [1, 1, 1, 1, 0] },
};

describe('icicle', () => {
  const times = totalsOf(paths);

  it('sums the times below each path', () => {
    expect([...times.selected]).toEqual([100, 90, 50, 0, 20]);
    expect([...times.rest]).toEqual([50, 30, 10, 10, 0]);
    expect([...times.depth]).toEqual([0, 1, 2, 1, 2]);
    expect(treeOrder(paths)).toEqual([0, 1, 2, 4, 3]);
  });

  it('places calls below their callers, by the time of a side', () => {
    expect(framesOf(paths, times, 'difference', -1, 0.01)).toEqual([
      { path: 0, depth: 0, x: 0, width: 1 }, { path: 1, depth: 1, x: 0, width: 0.9 }, { path: 2, depth: 2, x: 0, width: 0.5 }, { path: 4, depth: 2, x: 0.5, width: 0.2 },
    ]);
    expect(framesOf(paths, times, 'rest', -1, 0.01).map((f) => [f.path, f.x, f.width])).toEqual([[0, 0, 1], [1, 0, 0.6], [2, 0, 0.2], [3, 0.6, 0.2]]);
    expect(framesOf(paths, times, 'selected', 1, 0.3).map((f) => [f.path, f.width])).toEqual([[0, 1], [1, 1], [2, 50 / 90]]);
    expect(framesOf({ ...paths, parent: [] }, totalsOf({ ...paths, parent: [] }), 'rest', -1, 0)).toEqual([]);
  });

  it('moves between frames', () => {
    const frames = framesOf(paths, times, 'difference', -1, 0.01);
    expect(['ArrowDown', 'ArrowUp', 'ArrowRight', 'Home', 'a'].map((key) => neighbor(frames, paths, 1, key))).toEqual([2, 0, 1, 0, -1]);
    expect(neighbor(frames, paths, 2, 'ArrowRight')).toBe(4);
    expect(neighbor(frames, paths, 3, 'ArrowRight')).toBe(0);
  });

  it('colors the change of own time', () => {
    const scale = scaleOf(paths, times);
    expect(scale).toBe(40);
    expect([40, 17, 5, 1, 0, -10].map((change) => shadeOf(change, scale))).toEqual([4, 4, 3, 2, 0, -3]);
  });
});

describe('words of an explanation', () => {
  const line = { field: 'span.amount', service: 'web', op: 'range', value: '', compared: 1, same: [] as AttributeLine['same'] } as AttributeLine;

  it('names values', () => {
    expect(valueName({ ...line, low: 180, high: 640.25 })).toBe('180 to 640.3');
    expect(valueName({ ...line, low: 1 })).toBe('at least 1');
    expect(valueName({ ...line, high: 20000 })).toBe('at most 20,000');
    expect(valueName({ ...line, op: '=', value: '7' })).toBe('7');
    expect(valueName({ ...line, op: 'exists' })).toBe('any');
    expect(valueName({ ...line, high: -1234567 })).toBe('at most −1,234,567');
  });

  it('says what is the same', () => {
    const same = ['resource.pod', 'resource.host', 'resource.pod'].map((field) => ({ ...line, field, op: '=' as const, value: 'a' }));
    expect(noteOf({ ...line, deciles: [9, 10] })).toBe('web; deciles 9 to 10 of the others');
    expect(sameOf({ ...line, low: 5, same: [...same, { ...line, low: 5 }, { ...line, field: 'span.size', high: 7 }] })).toEqual(['pod = a', 'host = a', 'size = at most 7']);
    expect([callText(paths, 0), callText(paths, 3)]).toEqual(['GET', 'send, waiting on smtp']);
    expect(differenceText(1.12e9)).toBe('▲ +1.12\u202fs');
    expect(differenceText(-9e6)).toBe('▼ −9.00\u202fms');
  });
});

describe('the selection', () => {
  const run: Run = { q: '{ service = "web" }', select: [], from: 1000, to: 9000, start: '1000000000', end: '9000000000' };
  const view = (change: Partial<View>): View => ({ ...emptyView({ page: 'explore' }), ...change });
  const sel = { t0: 500, t1: 5000, d0: 1e9, d1: 2e9 };

  it('becomes parameters and a search', () => {
    expect(explainParams(run, view({}))).toBeNull();
    expect(explainParams(run, view({ sel: 'errors', base: 'day' }))).toMatchObject({ sel_q: '{ error }', baseline: 'day', of: 'traces' });
    expect(explainParams(run, view({ sel }))).toMatchObject({ sel_start: '1000000000', sel_end: '5000000000', sel_min: '1000000000ns', sel_max: '2000000000ns' });
    expect(selectedSearch(run, view({ sel }), '{ .a = "b" }')).toEqual({
      q: '{ service = "web" && trace.duration >= 1s && trace.duration <= 2s } && { .a = "b" }', range: { from: '1970-01-01T00:00:01.000Z', to: '1970-01-01T00:00:05.000Z' },
    });
    expect(explainParams(run, view({ sel: 'slowest', of: 'spans' }))).toMatchObject({ sel_slowest: 0.05, of: 'spans' });
    expect(selectedSearch(run, view({ sel: 'slowest' }), '{ .a = "b" }', 1234567).q).toBe('{ service = "web" && trace.duration >= 1234.567us } && { .a = "b" }');
    expect(selectedSearch(run, view({ sel: 'errors' }), '{ .a = "b" }')).toEqual({ q: '{ service = "web" && error } && { .a = "b" }' });
  });

  it('is a part of the run, the same one each time', () => {
    expect([selectedRun(run, view({})), selectedRun(run, view({ sel: 'slowest' }))]).toEqual([null, null]);
    const part = selectedRun(run, view({ sel }))!;
    expect(part).toMatchObject({ q: '{ service = "web" && trace.duration >= 1s && trace.duration <= 2s }', from: 1000, to: 5000, start: '1000000000', end: '5000000000', until: '7000000000' });
    expect(selectedRun(run, view({ sel: { ...sel } }))).toBe(part);
    expect(selectedRun(run, view({ sel, of: 'spans' }))!.until).toBeUndefined();
    // The durations of a box are exact, so that the list and the heatmap have the same traces.
    expect(selectedRun(run, view({ sel: { ...sel, d0: 25_874_004, d1: 696_235_435 } }))!.q).toBe('{ service = "web" && trace.duration >= 25874.004us && trace.duration <= 696235.435us }');
    expect(selectedRun(run, view({ sel: 'slowest' }), 5e9)!.q).toBe('{ service = "web" && trace.duration >= 5s }');
  });

  it('is counted in the cells of the heatmap, also in a sample', () => {
    const heat = { of: 'traces', start: '0', step: 1e9, columns: 9, bucketsPerOctave: 4, share: 0.5, estimatedErrors: 7, cells: { column: [0, 1, 4], bucket: [120, 120, 120], count: [1, 20, 300], errors: [0, 0, 0] } } as Heatmap;
    const box = { t0: 1000, t1: 5000, d0: 2 ** 30, d1: 2 ** 30.25 };
    expect([selectedCount(box, heat, undefined), selectedCount('errors', heat, undefined), selectedCount('slowest', heat, undefined)]).toEqual([640, 7, undefined]);
  });

  it('adds sets to a search', () => {
    expect(withSet('', '{ a = 1 }')).toBe('{ a = 1 }');
    expect(withSet('{}', '{ error }')).toBe('{ error }');
    expect(withSet('{ root } || { error }', '{ .a = 1 }')).toBe('({ root } || { error }) && { .a = 1 }');
    expect(withSet('{ root } >> { error } | select(name)', '{ .a = 1 }')).toBe('{ root } >> { error } && { .a = 1 }');
    expect(withSet('{ error } | count() > 2', '{ .a = 1 }')).toBe('({ error } | count() > 2) && { .a = 1 }');
  });
});

it('labels durations from 3 ns on, since 1 ns is written as 0', () => {
  expect(ticks(0, 12)).toEqual([3]);
  expect(ticks(12, 20)).toEqual([10, 30, 100]);
});
