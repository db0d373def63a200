// Which attributes differ between the calls of the rows that changed.

import type { Attribute, SpanDetail } from '../api/types';
import { operation, serviceName, shownService, spanID } from '../trace/model/span';
import { byImpact, calls } from './rank';
import type { Pair } from './use-pair';
import type { Side } from './types';

/** Rows whose attributes are compared, and calls of each row in each trace. */
const maxRows = 20;
const maxCalls = 3;

/** Calls of a row in both traces, as span ids. */
export interface Compared {
  row: number;
  /** The shown service, and the one that sent the spans. */
  service: string;
  sender: string;
  operation: string;
  a: string[];
  b: string[];
}

/** An attribute whose values differ. */
export interface AttributeDifference {
  service: string;
  sender: string;
  /** Operation, or "" for attributes of the resource. */
  operation: string;
  /** Field of the search language without its scope. */
  key: string;
  resource: boolean;
  a: string[];
  b: string[];
}

/** The rows in both traces in which most of the difference begins. */
export function comparedRows(pair: Pair): Compared[] {
  const { a, b, comparison: c } = pair;
  const both = Array.from({ length: c.rows }, (_, r) => r).filter((r) => calls(c, r, 'a') > 0 && calls(c, r, 'b') > 0);
  const ids = (side: Side, model: typeof a, row: number): string[] => [...side.spans.subarray(side.offset[row], Math.min(side.offset[row] + maxCalls, side.offset[row + 1]))].map((s) => spanID(model, s));
  return byImpact(c, both).slice(0, maxRows).map((row) => {
    const first = c.a.spans[c.a.offset[row]];
    return { row, service: serviceName(a, shownService(a, first)), sender: a.services[a.service[first]], operation: operation(a, first), a: ids(c.a, a, row), b: ids(c.b, b, row) };
  });
}

/** Attributes that differ, in the order of the rows. Those of resources are listed once for each service. */
export function attributeDifferences(rows: Compared[], a: Map<string, SpanDetail>, b: Map<string, SpanDetail>): AttributeDifference[] {
  const list: AttributeDifference[] = [];
  const seen = new Set<string>();
  for (const row of rows) {
    const details = (ids: string[], of: Map<string, SpanDetail>): SpanDetail[] => ids.map((id) => of.get(id)).filter((d) => d !== undefined);
    const [inA, inB] = [details(row.a, a), details(row.b, b)];
    if (inA.length === 0 || inB.length === 0) continue;
    for (const resource of [false, true]) {
      const pick = (d: SpanDetail): Attribute[] => (resource ? d.resource : d.attributes);
      for (const d of differing(valuesOf(inA.map(pick)), valuesOf(inB.map(pick)))) {
        const id = `${row.service}\n${d.key}\n${resource ? '' : row.operation}`;
        if (seen.has(id)) continue;
        seen.add(id);
        list.push({ ...d, service: row.service, sender: row.sender, operation: resource ? '' : row.operation, resource });
      }
    }
  }
  return list;
}

/** Distinct values by key. */
function valuesOf(spans: Attribute[][]): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const { key, value } of spans.flat()) {
    const known = values.get(key) ?? [];
    if (!known.includes(value)) values.set(key, [...known, value]);
  }
  return values;
}

function differing(a: Map<string, string[]>, b: Map<string, string[]>): { key: string; a: string[]; b: string[] }[] {
  return [...new Set([...a.keys(), ...b.keys()])].sort().flatMap((key) => {
    const [x, y] = [a.get(key) ?? [], b.get(key) ?? []];
    const equal = x.length === y.length && x.every((v) => y.includes(v));
    return equal || isIncidental(key, [...x, ...y]) ? [] : [{ key, a: x, b: y }];
  });
}

/** Last parts of keys whose values differ between any two requests. */
const incidentalKey = /(^|[._-])(id|ids|uuid|guid|port|pid|time|timestamp|date|nonce|token|etag|offset|sequence)$/i;
/** UUIDs, long hexadecimal numbers, and times. */
const incidentalValue = /^(\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\}?|(0x)?[0-9a-f]{16,}|\d{4}-\d\d-\d\dT[\d:.]+.*|1\d{12}|1\d{18})$/i;

/** Whether values are ids, ports or times, which tell nothing. */
export function isIncidental(key: string, values: string[]): boolean {
  return incidentalKey.test(key) || values.every((v) => incidentalValue.test(v));
}
