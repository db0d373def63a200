import { describe, expect, it } from 'vitest';
import type { ErrorGroup, Errors } from '../../api/types';
import { nanos } from '../../shell/format';
import { orderGroups, secondLine, trendOf } from './error-trend';

function group(type: string, count: number, first: number, points: number[]): ErrorGroup {
  return { service: 's', operation: 'o', type, message: '', count, first: nanos(first), last: nanos(1000), points, traceID: '1', spanID: '2' };
}

function answer(complete: boolean, groups: ErrorGroup[] = [], since = 0): Errors {
  return { examined: 1, complete, since: nanos(since), omitted: 0, groups };
}

const [start, end] = [0, 1000];
const early = group('early', 100, 10, [10, 10, 10, 10, 10, 10]);
const fresh = group('fresh', 20, 500, [0, 0, 0, 5, 5, 10]);
const growing = group('growing', 40, 10, [1, 1, 1, 1, 18, 18]);
const single = group('single', 1, 900, [0, 0, 0, 0, 0, 1]);

describe('errors', () => {
  it('finds new and growing groups', () => {
    const all = answer(true);
    expect([early, fresh, growing].map((g) => trendOf(g, all, start, end))).toEqual(['usual', 'new', 'growing']);
  });
  it('claims nothing about errors that were not all examined', () => {
    const of = (...groups: ErrorGroup[]) => (since: number) => groups.map((g) => trendOf(g, answer(false, [], since), start, end));
    expect(of(fresh, growing, single)(600)).toEqual(['usual', 'usual', 'usual']);
    expect(of(fresh, single)(450)).toEqual(['usual', 'new']);
  });
  it('shows a message once', () => {
    const of = (type: string, message: string) => secondLine({ ...group(type, 1, 10, []), operation: 'Charge', message });
    expect(of('failed after n attempts', 'failed after 3 attempts')).toBe('Charge');
    expect(of('order n not found', 'order 7fa30b not found')).toBe('Charge');
    expect(of('Timeout', 'no answer within 3 s')).toBe('no answer within 3 s');
    expect([of('Timeout', ''), of('', '')]).toEqual(['Charge', 'no message']);
  });
  it('orders new, growing, then by count', () => {
    expect(orderGroups(answer(true, [single, early, growing, fresh]), start, end).map((g) => g.type)).toEqual(['fresh', 'growing', 'early', 'single']);
  });
});
