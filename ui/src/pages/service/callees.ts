// Outgoing calls of one name that have several callees: HTTP clients name their spans by the method only.

import type { Groups } from '../../api/groups';
import type { Facets, Nanos } from '../../api/types';
import { useRequest } from '../../shell/use-request';
import { rowsOf, type GroupRow } from '../explore/groups/model';
import { roleQuery } from './queries';

/** Attributes that name a callee, the best name first. */
const fields = ['span.peer.service', 'span.server.address', 'span.net.peer.name'];

const maxGroups = 200;

/** The calls of one name to one callee. */
export interface Callee extends Omit<GroupRow, 'values'> {
  callee: string;
}

/** The callees by the name of the calls, where there are several. `calls` is false if the service makes none. */
export function useCallees(service: string, calls: boolean, start: Nanos, end: Nanos): Map<string, Callee[]> {
  const q = roleQuery(service, 'calls');
  const facets = useRequest<Facets>(calls ? 'facets' : null, { q, start, end, fields: fields.join(', '), values: 1 }, { maxAge: 60_000 });
  const field = facets.data && calleeField(facets.data);
  const { data } = useRequest<Groups>(field ? 'groups' : null, { q, start, end, by: `name, ${field}`, of: 'spans', sort: 'time', limit: maxGroups }, { maxAge: 60_000 });
  return data ? calleesOf(data) : new Map();
}

/** The attribute that names most callees. */
export function calleeField(f: Pick<Facets, 'facets'>): string {
  const spans = (field: string): number => f.facets.find((x) => x.field === field)?.spans ?? 0;
  return fields.reduce((best, field) => (spans(field) > spans(best) ? field : best), spans(fields[0]) > 0 ? fields[0] : '');
}

/** Callees of an answer whose groups are of names and callees. */
export function calleesOf(data: Groups): Map<string, Callee[]> {
  const by = new Map<string, Callee[]>();
  for (const { values: [name, callee], ...numbers } of rowsOf(data)) {
    if (name === null || callee === null) continue;
    by.set(name, [...(by.get(name) ?? []), { ...numbers, callee }]);
  }
  for (const [name, list] of by) if (list.length < 2) by.delete(name);
  return by;
}
