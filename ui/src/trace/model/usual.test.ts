import { describe, expect, it } from 'vitest';
import type { Baseline } from '../../api/baseline';
import { percentileText } from '../usual';
import { buildModel } from './build';
import { outlineOf, span } from './samples';
import type { TraceModel } from './types';
import { buildUsual, percentileOf } from './usual';

const ms = 1e6;
const bucketOf = (ns: number): number => Math.floor(8 * Math.log2(ns));

/** Durations of operations: `n` calls each that take from 1 to 2 times `usual`, in equal parts by bucket. */
function baseline(n: number, operations: [service: string, name: string, usual: number][], kind = '1'): Baseline {
  return {
    start: '0', end: '60000000000',
    operations: {
      service: operations.map((o) => o[0]), name: operations.map((o) => o[1]), kind: kind.repeat(operations.length), calls: operations.map(() => n),
      p50: operations.map((o) => 1.4 * o[2]), p95: operations.map((o) => 1.9 * o[2]), p99: operations.map((o) => 2 * o[2]),
      bucket: operations.map((o) => bucketOf(o[2])), counts: operations.map(() => Array.from({ length: 8 }, () => n / 8)),
    },
  };
}

const model = (...tops: Parameters<typeof outlineOf>): TraceModel => buildModel(outlineOf(...tops), [], true);

describe('usual durations', () => {
  it('marks the span that causes the excess, and not its ancestors', () => {
    const m = model(span('root', 0, 900 * ms, { children: [
      span('mid', 0, 850 * ms, { children: [span('slow', 0, 800 * ms), span('fast', 800 * ms, 15 * ms)] }),
    ] }));
    const u = buildUsual(m, baseline(800, [['web', 'root', 50 * ms], ['web', 'mid', 30 * ms], ['web', 'slow', 10 * ms], ['web', 'fast', 10 * ms]]));
    expect([...u.mark]).toEqual([1, 1, 2, 0]);
  });

  it('looks through spans that are not above p99, and past messages', () => {
    const m = model(span('root', 0, 900 * ms, { children: [
      span('unknown', 0, 850 * ms, { children: [span('slow', 0, 800 * ms)] }),
    ] }), span('sender', 0, 500 * ms, { children: [span('process', 100 * ms, 5000 * ms, { kind: 5, service: 'mail' })] }));
    const u = buildUsual(m, baseline(800, [['web', 'root', 50 * ms], ['web', 'slow', 10 * ms], ['web', 'sender', 10 * ms]]));
    expect([...u.mark]).toEqual([1, 0, 2, 2, 0]);
  });

  it('needs calls: 20 for a percentile, 100 for a mark', () => {
    const m = model(span('root', 0, 900 * ms));
    for (const [calls, known, mark] of [[16, false, 0], [96, true, 0], [104, true, 2]] as const) {
      const u = buildUsual(m, baseline(calls, [['web', 'root', ms]]));
      expect([percentileOf(m, u, 0) !== null, u.mark[0]]).toEqual([known, mark]);
    }
    expect(percentileOf(m, buildUsual(m, baseline(800, [['web', 'root', ms]], '2')), 0)).toBe(null); // another kind
  });

  it('interpolates percentiles within buckets', () => {
    const u = (takes: number): number => {
      const m = model(span('root', 0, takes));
      return percentileOf(m, buildUsual(m, baseline(800, [['web', 'root', 1 << 20]])), 0)!;
    };
    expect(u(1 << 19)).toBe(0);
    expect(u(1 << 20)).toBe(0);
    expect(u(Math.round(2 ** 20.5))).toBeCloseTo(0.5);
    expect(u(Math.round(2 ** 20.97))).toBeCloseTo(0.97, 3);
    expect(u(1 << 22)).toBe(1);
  });

  it('writes percentiles', () => {
    expect([null, 0, 0.505, 0.9899, 0.99, 0.9967, 1].map(percentileText)).toEqual(['', 'p0', 'p50', 'p98', 'p99.0', 'p99.6', 'p99.9']);
  });
});
