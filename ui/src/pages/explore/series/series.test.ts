import { describe, expect, it } from 'vitest';
import { metricsOf } from '../../../query/metrics';
import type { Run } from '../run';
import { seriesOf, type SeriesAnswer } from './model';

describe('metricsOf', () => {
  it('splits a query before its first function', () => {
    expect(metricsOf('{ name = "| rate()" } | rate() by (name)')).toMatchObject({ set: '{ name = "| rate()" }', rest: '| rate() by (name)', inSeconds: false, adds: false });
    expect(metricsOf('{} && { error }|count_over_time()')).toMatchObject({ set: '{} && { error }', adds: true });
    expect(metricsOf('({} | rate()) / ({} | count_over_time())')).toMatchObject({ set: '({}', adds: false });
  });
  it('knows which numbers are durations', () => {
    expect(metricsOf('{} | quantile_over_time(duration, .9)')).toMatchObject({ ofDurations: true, inSeconds: true });
    expect(metricsOf('{ span.a * 2 > 3 } | max_over_time(trace:duration)')).toMatchObject({ inSeconds: true });
    expect(metricsOf('{} | histogram_over_time(duration)')).toMatchObject({ ofDurations: true, inSeconds: false, adds: true });
    expect(metricsOf('{} | max_over_time(duration) * 2')).toMatchObject({ inSeconds: false });
    expect(metricsOf('{} | avg_over_time(span.size)')).toMatchObject({ inSeconds: false });
    expect(metricsOf('{} | compare({ error })')).toMatchObject({ compares: true });
  });
  it('leaves searches alone', () => {
    for (const text of ['', 'plain | rate', '{ error } | count() > 2', '{} | select(rate)', '{ a = "x" } >> {}']) expect(metricsOf(text)).toBe(null);
  });
});

const run = { q: '', select: [], from: 0, to: 3_600_000, start: '0', end: '0' } satisfies Run;
const label = (key: string, stringValue: string) => ({ key, value: { stringValue } });
const of = (q: string, series: SeriesAnswer['series']) => seriesOf({ series }, metricsOf(q)!, run);

describe('seriesOf', () => {
  it('puts samples at the steps that they end, with gaps', () => {
    const { times, end, list } = of('{} | rate() by (name)', [
      { labels: [label('name', 'a')], samples: [{ timestampMs: '60000', value: 1 }, { timestampMs: '120000' }] },
      { labels: [label('name', 'b')], samples: [{ timestampMs: '120000', value: 4 }] },
    ]);
    expect([times, end]).toEqual([[30_000, 60_000, 90_000], 120_000]);
    expect(list.map((s) => [s.name, s.values, s.figures])).toEqual([['b', [null, null, 4], [4, 4, 4, 4]], ['a', [1, null, 0], [0, 0, 1, 0.5]]]);
  });
  it('names quantiles and buckets, and reads examples', () => {
    const exemplars = [{ labels: [label('trace:id', 'abc'), label('name', 'a')], timestampMs: '1', value: 2 }];
    const { list, columns } = of('{} | histogram_over_time(duration) by (name)', [{ labels: [label('name', 'a'), { key: '__bucket', value: { doubleValue: 0.016 } }], samples: [{ timestampMs: '60000', value: 1 }], exemplars }]);
    expect([list[0].name, list[0].examples, columns.map((c) => c.label)]).toEqual(['a, ≤ 16.0\u202fms', [{ trace: 'abc'.padStart(32, '0'), at: 1, value: 2 }], ['Last value', 'Minimum', 'Maximum', 'Sum']]);
    expect(of('{} | quantile_over_time(duration, .999)', [{ labels: [{ key: 'p', value: { doubleValue: 0.999 } }], samples: [] }]).list[0].name).toBe('p99.9');
  });
  it('puts the examples of calculations on their lines', () => {
    const exemplars = [{ labels: [label('trace:id', 'abc')], timestampMs: '61000', value: 2 }];
    const { list } = of('({} | rate()) / ({} | rate())', [{ labels: [label('__name__', '(rate / rate)')], samples: [{ timestampMs: '60000', value: 1 }, { timestampMs: '90000', value: 0.5 }], exemplars }]);
    expect(list[0].examples).toMatchObject([{ at: 61_000, value: 0.5 }]);
  });
  it('compares shares', () => {
    const side = (meta: string, value: string, n: number) => ({ labels: [label('__meta_type', meta), label('span.a', value)], value: n });
    const { list } = of('{} | compare({ error })', [side('baseline', 'x', 30), side('baseline', 'y', 10), side('selection', 'y', 5), side('baseline_total', 'nil', 40), side('selection_total', 'nil', 5)]);
    expect(list.map((s) => [s.name, s.figures])).toEqual([['span.a = y', [1, 0.25, 0.75]], ['span.a = x', [0, 0.75, -0.75]]]);
  });
});
