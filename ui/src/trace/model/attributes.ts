// Attributes of all spans of a trace, for grouping and columns.

import type { AttributeColumn, AttributeKeys, SpanDetail } from '../../api/types';
import type { AttributeValues, TraceModel } from './types';

/** Longest value; the rest is cut off. The server does about the same. */
const maxValue = 256;

/** Keys of the attributes of spans and resources, the most frequent first. */
export function keysOf(spans: SpanDetail[]): AttributeKeys {
  const counts = new Map<string, number>();
  for (const span of spans) {
    const own = [...span.attributes.map((a) => `span.${a.key}`), ...span.resource.map((a) => `resource.${a.key}`)];
    for (const key of new Set(own)) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const list = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return { key: list.map(([key]) => key), spans: list.map(([, n]) => n), more: false };
}

/** Values of an attribute, named as in searches (`span.KEY`, `resource.KEY`), of spans in the order of the model. */
export function valuesOf(spans: SpanDetail[], field: string): AttributeValues {
  const dot = field.indexOf('.');
  const key = field.slice(dot + 1);
  const index = new Map<string, number>();
  const value = new Int32Array(spans.length).fill(-1);
  spans.forEach((span, i) => {
    const found = (field.startsWith('resource.') ? span.resource : span.attributes).find((a) => a.key === key);
    if (!found) return;
    const text = found.value.length > maxValue ? `${found.value.slice(0, maxValue)}…` : found.value;
    if (!index.has(text)) index.set(text, index.size);
    value[i] = index.get(text)!;
  });
  return { values: [...index.keys()], value };
}

/** Assigns a column of the server to the spans of the model. Spans that share an id have the same value. */
export function joinColumn(m: Pick<TraceModel, 'spans' | 'ids'>, column: AttributeColumn, ids: Uint8Array): AttributeValues {
  const words = (bytes: Uint8Array): BigUint64Array => new BigUint64Array(bytes.slice().buffer, 0, bytes.length >> 3);
  const byID = new Map<bigint, number>();
  words(ids).forEach((id, i) => byID.set(id, column.value[i]));
  const value = new Int32Array(m.spans);
  words(m.ids).forEach((id, i) => { value[i] = byID.get(id) ?? -1; });
  return { values: column.values, value };
}
