import { expect, it } from 'vitest';
import type { Groups } from '../../api/groups';
import { servicesOf } from './facet-services';

const answer = (pairs: [string, string | null][], distinct = pairs.length): Pick<Groups, 'groups' | 'distinct' | 'other'> => {
  const numbers = pairs.map(() => 1);
  return { distinct, other: 0, groups: { values: [pairs.map((p) => p[0]), pairs.map((p) => p[1])], where: [], count: numbers, errors: numbers, p50: numbers, p95: numbers, p99: numbers, time: numbers } };
};

it('says of which service a value is, if it is of one', () => {
  const services = servicesOf(answer([['payment', '2.14.0'], ['cart', '1.0.0'], ['catalog', '1.0.0'], ['redis', null]]));
  expect(services.get('2.14.0')).toBe('payment');
  expect(services.size).toBe(1);
});

it('says nothing if not all groups were read', () => {
  expect(servicesOf(answer([['payment', '2.14.0']], 300)).size).toBe(0);
});
