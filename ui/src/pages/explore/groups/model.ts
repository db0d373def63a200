// What the group-by table shows, without its elements.

import type { Groups } from '../../../api/groups';
import { addText, conditionsOn } from '../../../query/edit';
import { canonical } from '../../../query/field';

/** Columns by which the server sorts groups, always the largest first. */
export const orders = ['count', 'errors', 'p50', 'p95', 'p99', 'time'] as const;

/** A column by which groups are sorted. */
export type Order = (typeof orders)[number];

/** The order of the parameter `sort`, which other tabs use, too. */
export function orderOf(sort: string): Order {
  return orders.find((o) => o === sort) ?? 'count';
}

/** The keys of the parameter `by`. Without one: operations of the one service that the search names, otherwise services. */
export function keysOf(by: string[], q: string): string[] {
  if (by.length > 0) return by.slice(0, 2);
  return conditionsOn(q, 'service').some((c) => c.op === '=') ? ['name'] : ['service'];
}

/** Whether keys are of whole traces. */
export function ofTraces(keys: string[]): boolean {
  return keys.some((k) => canonical(k).startsWith('trace.'));
}

/** One row of the table. */
export interface GroupRow {
  values: (string | null)[];
  where: string;
  count: number;
  errors: number;
  p50: number;
  p95: number;
  p99: number;
  time: number;
}

/** The rows of an answer. Counts of a sample become estimates. */
export function rowsOf({ groups: g, share }: Groups): GroupRow[] {
  return g.count.map((count, i) => ({
    values: g.values.map((v) => v[i]), where: g.where[i], count: Math.round(count / share), errors: Math.round(g.errors[i] / share), p50: g.p50[i], p95: g.p95[i], p99: g.p99[i], time: g.time[i] / share,
  }));
}

/** The search limited to a group. */
export function onlyGroup(q: string, where: string): string {
  return addText(q, where);
}

/** The search without a group. */
export function withoutGroup(q: string, where: string): string {
  return addText(q, `!(${where})`);
}
