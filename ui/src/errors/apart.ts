// Which values set the failed spans of a group apart from other spans of the same operations.

import type { Facets } from '../api/types';
import type { ErrorGroup } from '../api/errors';
import { canonical, quote } from '../query/field';

/** One value, with the shares of the failed spans and of the others that have it. */
export interface Apart {
  field: string;
  value: string;
  failed: number;
  others: number;
}

const maxOperations = 5;
const minSpans = 30; // on each side; fewer say nothing
const minDifference = 0.2;
const maxValues = 5;

/** The spans with which the failed ones are compared, as a search: those of the same operations. */
export function comparedWith(g: ErrorGroup): string {
  const names = g.operations.slice(0, maxOperations).map((o) => `name = ${quote(o.text)}`);
  const operations = names.length > 1 ? `(${names.join(' || ')})` : names[0] ?? 'true';
  return `{ service = ${quote(g.service)} && ${operations} }`;
}

// These say that a span failed, and not why.
const consequences = new Set(['status', 'statusMessage', 'service', '.error.type', 'span.error.type', '.http.response.status_code', 'span.http.response.status_code', '.http.status_code', 'span.http.status_code', 'span.rpc.grpc.status_code', 'span.error']);

/** The values that differ most; null if there are too few spans on one side. */
export function apartOf(data: Facets): Apart[] | null {
  const rest = data.spans - data.selected;
  if (data.selected < minSpans || rest < minSpans) return null;
  const best = data.facets.filter((f) => !consequences.has(canonical(f.field))).flatMap((f) => {
    const i = f.values.score.findIndex((s) => s >= minDifference);
    if (i < 0) return [];
    return [{ field: f.field, value: f.values.text[i], failed: f.values.selected[i] / data.selected, others: (f.values.count[i] - f.values.selected[i]) / rest, score: f.values.score[i] }];
  });
  return best.sort((a, b) => b.score - a.score).slice(0, maxValues).map(({ score: _, ...value }) => value);
}
