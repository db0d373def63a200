// Which attributes of a span are rare among the calls of its operation.

import type { Facets, SpanDetail } from '../../api/types';
import { attribute, canonical } from '../../query/field';

/** A value that few calls have. */
export interface Apart {
  field: string;
  key: string;
  value: string;
  /** Share of the examined calls with the same value, 0 to 1. */
  share: number;
}

/** Fewer calls say nothing about what is usual. */
const minCalls = 100;
/** Share of the calls with this value, or with others that are as rare. */
const rare = 0.01;
/** Longer values are cut by the server. */
const maxLength = 200;
const shown = 5;

/** Number of values of a field to ask for. Of fields with more, nothing is known. */
export const askedValues = 200;

/** The attributes of a span and its resource, as fields. */
export function fieldsOf(d: SpanDetail): { field: string; key: string; value: string }[] {
  const of = (scope: 'span.' | 'resource.', list: SpanDetail['attributes']) => list.filter((a) => a.key !== 'service.name' && a.value.length <= maxLength).map((a) => ({ field: attribute(scope, a.key), key: a.key, value: a.value }));
  return [...of('span.', d.attributes), ...of('resource.', d.resource)];
}

/**
 * The attributes whose value is rare, the rarest first. Rare is a value if it and all values that are not more frequent make up at most 1 % of the calls: so a value of many
 * equally rare ones, such as an id, is none. Of fields of which not all values are known, nothing is said.
 */
export function apartOf(d: SpanDetail, { spans, facets }: Facets): Apart[] {
  if (spans < minCalls) return [];
  const known = new Map(facets.map((f) => [canonical(f.field), f]));
  return fieldsOf(d).flatMap(({ field, key, value }) => {
    const facet = known.get(canonical(field));
    if (!facet || facet.other > 0 || facet.distinct > facet.values.text.length) return [];
    const { text, count } = facet.values;
    const own = count[text.indexOf(value)] ?? 0;
    // A value that never occurred is as surprising as one that occurred once.
    const tail = count.filter((n) => n <= Math.max(own, 1)).reduce((sum, n) => sum + n, 0);
    return tail <= rare * spans ? [{ field, key, value, share: own / spans }] : [];
  }).sort((a, b) => a.share - b.share).slice(0, shown);
}
