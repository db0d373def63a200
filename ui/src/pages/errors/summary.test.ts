import { expect, test } from 'vitest';
import type { ErrorGroup, Errors } from '../../api/errors';
import { nanos } from '../../shell/format';
import { servicesOf, summaryOf } from './summary';

const group = (service: string, count: number, first: number): ErrorGroup => ({
  service, operation: 'o', operations: [], otherOperations: 0, versions: [], type: 'T', pattern: '', frame: '', where: '', count, first: nanos(first), last: nanos(1000), points: [1, 1, 1], message: '',
  traceID: '1', spanID: '2',
});
const answer = (...groups: ErrorGroup[]): Errors => ({ examined: 9, complete: true, since: '0', omitted: 0, groups });

test('says how many groups there are, and which are new', () => {
  expect(summaryOf(answer(), 0, 1000)).toBe('No span failed');
  expect(summaryOf(answer(group('a', 2, 0)), 0, 1000)).toBe('1 kind of error, none of them new, most in a');
  expect(summaryOf({ ...answer(group('a', 2, 0), group('b', 1, 800), group('b', 4, 0)), omitted: 3 }, 0, 1000)).toBe('6 kinds of errors, 1 of them new, most in b');
});

test('counts errors of services', () => {
  expect(servicesOf([group('a', 2, 0), group('b', 1, 0), group('b', 4, 0)])).toEqual([{ name: 'b', count: 5 }, { name: 'a', count: 2 }]);
});
