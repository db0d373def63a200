import { expect, test } from 'vitest';
import type { ErrorGroup, Errors, Trend } from '../../api/errors';
import { servicesOf, summaryOf } from './summary';

const group = (service: string, count: number, kind: Trend['kind'] = 'usual', until?: string): ErrorGroup => ({
  id: '1', service, operation: 'o', operations: [], otherOperations: 0, versions: [], type: 'T', pattern: '', frame: '', where: '', count, first: '1', last: '2', trend: { kind, until }, points: [1, 1, 1], message: '',
  traceID: '1', spanID: '2',
});
const answer = (...groups: ErrorGroup[]): Errors => ({ spans: groups.reduce((n, g) => n + g.count, 0), complete: true, share: 1, omitted: 0, groups });

test('says how many errors and kinds there are, and which are new or grew', () => {
  expect(summaryOf(answer())).toBe('No span failed');
  expect(summaryOf(answer(group('a', 2)))).toBe('2 failed spans of 1 kind, none new; most in a');
  expect(summaryOf({ ...answer(group('a', 2), group('b', 1, 'new'), group('b', 4, 'growing')), omitted: 3 })).toBe('7 failed spans of 6 kinds: 1 new, 1 growing; most in b');
  expect(summaryOf(answer(group('a', 2, 'new', '9'), group('a', 2, 'growing', '9')))).toBe('4 failed spans of 2 kinds: 2 rose and ended; most in a');
  expect(summaryOf({ ...answer(group('a', 2)), share: 0.5 })).toBe('≈ 2 failed spans of 1 kind, none new; most in a');
});

test('counts errors of services', () => {
  expect(servicesOf([group('a', 2), group('b', 1), group('b', 4)])).toEqual([{ name: 'b', count: 5 }, { name: 'a', count: 2 }]);
});
