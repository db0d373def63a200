import { describe, expect, it } from 'vitest';
import type { ErrorGroup, Errors } from '../api/errors';
import { nanos } from '../shell/format';
import { groupID, orderGroups, secondLine, titleOf, trendOf } from './trend';

function group(type: string, count: number, first: number, points: number[]): ErrorGroup {
  return { service: 's', operation: 'o', operations: [], otherOperations: 0, versions: [], type, pattern: '', frame: '', where: '', message: '', count, first: nanos(first), last: nanos(1000), points, traceID: '1', spanID: '2' };
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
  it('knows new and growing groups from the time before', () => {
    const before = { examined: 10, complete: true, since: '0' };
    const of = (g: ErrorGroup, n: number) => trendOf({ ...g, before: n }, { ...answer(true), before }, start, end);
    expect([of(early, 0), of(early, 90), of(early, 30)]).toEqual(['new', 'usual', 'growing']);
    expect(of(fresh, 18)).toBe('usual');
    // Without any error before, nothing is compared.
    expect(trendOf({ ...early, before: 0 }, { ...answer(true), before: { ...before, examined: 0 } }, start, end)).toBe('usual');
  });
  it('shows a message once', () => {
    const of = (type: string, pattern: string, message: string) => {
      const g = { ...group(type, 1, 10, []), operation: 'Charge', pattern, message };
      return [titleOf(g), secondLine(g)];
    };
    expect(of('', 'failed after <n> attempts', 'failed after 3 attempts')).toEqual(['failed after <n> attempts', 'Charge']);
    expect(of('Timeout', 'no answer within <n> s', 'no answer within 3 s')).toEqual(['Timeout', 'no answer within 3 s']);
    expect(of('Timeout', '', '')).toEqual(['Timeout', 'Charge']);
    expect(of('', '', '')).toEqual(['Charge', 'no message']);
  });
  it('has an id of what tells groups apart', () => {
    const g = group('Timeout', 1, 10, []);
    expect(groupID({ ...g, count: 7, operation: 'o' })).toBe(groupID(g));
    expect(new Set([g, { ...g, frame: 'f' }, { ...g, pattern: 'f' }, { ...g, operation: 'p' }].map(groupID)).size).toBe(4);
  });
  it('orders new, growing, then by count', () => {
    expect(orderGroups(answer(true, [single, early, growing, fresh]), start, end).map((g) => g.type)).toEqual(['fresh', 'growing', 'early', 'single']);
  });
});
