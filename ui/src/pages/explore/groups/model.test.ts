import { expect, test } from 'vitest';
import type { Groups } from '../../../api/groups';
import { keysOf, ofTraces, onlyGroup, orderOf, rowsOf, withoutGroup } from './model';

test('without keys, groups are services, or the operations of the searched one', () => {
  expect(keysOf([], '{ error }')).toEqual(['service']);
  expect(keysOf([], '{ service = "cart" && error }')).toEqual(['name']);
  expect(keysOf(['kind', 'http.route', 'status'], '')).toEqual(['kind', 'http.route']);
});

test('fields of the trace group whole traces', () => {
  expect(ofTraces(['service', 'rootName'])).toBe(true);
  expect(ofTraces(['service', 'name'])).toBe(false);
});

test('the order of another tab is not one of groups', () => {
  expect(orderOf('p95')).toBe('p95');
  expect(orderOf('-duration')).toBe('count');
});

test('a group is added to a search, or left out of it', () => {
  const where = 'service = "a" && !exists(.b)';
  expect(onlyGroup('', where)).toBe('{ service = "a" && !exists(.b) }');
  expect(onlyGroup('{ x.y = 1 || error }', where)).toBe('{ (x.y = 1 || error) && service = "a" && !exists(.b) }');
  expect(withoutGroup('{ error } >> { name = "n" }', where)).toBe('{ error } >> { name = "n" && !(service = "a" && !exists(.b)) }');
  expect(onlyGroup('{ broken', where)).toBe('{ broken');
});

test('counts of a sample become estimates', () => {
  const data = { share: 0.5, groups: { values: [['a', null]], where: ['w', 'x'], count: [3, 1], errors: [1, 0], p50: [1, 2], p95: [1, 2], p99: [1, 2], time: [3, 2] } } as Groups;
  expect(rowsOf(data).map((r) => [r.values, r.count, r.errors])).toEqual([[['a'], 6, 2], [[null], 2, 0]]);
});
