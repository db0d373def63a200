import type { Facet } from '../../api/types';
import { canonical } from '../../query/field';

/** How evenly the values of a field divide the spans: 0 for one value, or one for each span, 1 for an even division into few. */
function evenness(f: Facet, spans: number): number {
  const counts = f.values.count.filter((n) => n > 0);
  if (f.distinct < 2 || f.spans === 0 || counts.length < 2) return 0;
  const listed = counts.reduce((a, b) => a + b, 0);
  const entropy = counts.reduce((sum, n) => sum - (n / listed) * Math.log(n / listed), 0);
  return (entropy / Math.log(counts.length)) * (listed / f.spans) * Math.sqrt(f.spans / Math.max(1, spans));
}

// What tells failed spans from others comes first; what only describes the failure itself does not count.
const outcome = new Set(['status', 'error', 'statusMessage', 'event:name']);

// Of failed spans, people ask first what fails, and how.
const failure = new Set(['service', 'name', 'statusMessage']);

/** The name under which a search has conditions on a field (`named`): an attribute that was renamed has several, and each also without its scope. If there is none, the name of the facet. */
export function nameIn(named: Set<string>, f: Facet): string {
  const names = [f.field, ...(f.names ?? [])];
  return [...names, ...names.map((name) => name.replace(/^(span|resource)\./, '.'))].find((name) => named.has(canonical(name))) ?? f.field;
}

/** Fields in the order in which they help to narrow a search: first those whose values tell failed spans from the others, then those that divide evenly. Fields with one value are last, except for those that the search names: they stay at the top, so that a condition can be changed. If all spans failed (`failed`), what says which and how comes first. */
export function orderFacets(facets: Facet[], spans: number, named: Set<string> = new Set(), failed = false): Facet[] {
  const score = (f: Facet): number => (named.has(canonical(nameIn(named, f))) ? 10 : 0) + (f.distinct < 2 ? -1 : (failed && failure.has(f.field) ? 2 : 0) + (outcome.has(f.field) ? 0 : 2 * Math.abs(f.score)) + evenness(f, spans));
  return facets.map((f) => ({ f, s: score(f) })).sort((a, b) => b.s - a.s || b.f.spans - a.f.spans).map(({ f }) => f);
}
