import { useEffect, useMemo, useState } from 'preact/hooks';
import { get } from '../api/client';
import type { Facets, SpanDetail } from '../api/types';
import { attribute, quote } from '../query/field';
import { nanos, none, millis, percent } from '../shell/format';
import { ServiceMark } from '../shell/service-mark';
import { Empty, Failure, Skeleton } from '../shell/states';
import { t } from '../shell/text';
import { attributeDifferences, comparedRows, type AttributeDifference } from './attributes';
import type { Pair } from './use-pair';
import css from './compare.module.css';

/** State of the attributes that differ. */
export interface Attributes {
  list: AttributeDifference[] | null;
  error: Error | null;
}

/** Reads the spans of the rows that differ most, and compares their attributes. */
export function useAttributes(pair: Pair): Attributes {
  const [state, setState] = useState<Attributes>({ list: null, error: null });
  useEffect(() => {
    const abort = new AbortController();
    const rows = comparedRows(pair);
    const byID = (spans: SpanDetail[]): Map<string, SpanDetail> => new Map(spans.map((s) => [s.spanID, s]));
    async function read(): Promise<void> {
      const a = await pair.sources.a.details([...new Set(rows.flatMap((r) => r.a))], abort.signal);
      const b = await pair.sources.b.details([...new Set(rows.flatMap((r) => r.b))], abort.signal);
      if (!abort.signal.aborted) setState({ list: attributeDifferences(rows, byID(a), byID(b)), error: null });
    }
    read().catch((error: unknown) => { if (!abort.signal.aborted) setState({ list: null, error: error as Error }); });
    return () => abort.abort();
  }, [pair]);
  return state;
}

/** The attributes that differ, with the values that their operations usually have. */
export function AttributesTable({ pair, attributes: { list, error } }: { pair: Pair; attributes: Attributes }) {
  const usual = useUsualValues(pair, list);
  if (error) return <Failure what={t('The attributes cannot be loaded')} error={error} />;
  if (!list) return <Skeleton rows={4} />;
  if (!pair.comparison.common) return <Empty title={t('No call path is in both traces, so there are no attributes to compare.')} />;
  if (list.length === 0) return <Empty title={t('The calls that differ most have the same attributes.')}><p>{t('IDs, ports and times were omitted.')}</p></Empty>;
  return (
    <div class={css.attributes} tabIndex={0} role="region" aria-label={t('Attributes that differ')}>
      <p class={css.note}>{t('From the calls that differ most. IDs, ports and times are omitted.')}</p>
      <table class={css.attributeTable}>
        <thead><tr><th scope="col">{t('Span and key')}</th><th scope="col">A</th><th scope="col">B</th>{pair.sources.a.kind === 'server' && <th scope="col">{t('Usual values of the key')}</th>}</tr></thead>
        <tbody>
          {list.map((d) => (
            <tr key={`${d.service} ${d.operation} ${d.key}`}>
              <th scope="row" title={[d.service, d.operation, d.key].filter(Boolean).join(' ')}><span class={css.attributeName}><ServiceMark name={d.service} /><span>{d.key}</span></span></th>
              <td><code>{d.a.join(', ') || none}</code></td>
              <td class={css.second}><code>{d.b.join(', ') || none}</code></td>
              {pair.sources.a.kind === 'server' && <td class={css.usualValues}>{usual.get(fieldID(d))}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const fieldOf = (d: AttributeDifference): string => attribute(d.resource ? 'resource.' : 'span.', d.key);
const fieldID = (d: AttributeDifference): string => `${d.service}\n${d.operation}\n${fieldOf(d)}`;

/** Services and operations of which values are counted. */
const maxGroups = 8;

/** The most frequent values of each attribute in the time before the traces: `cardlane 49 %, northpay 31 %`. */
function useUsualValues(pair: Pair, list: AttributeDifference[] | null): Map<string, string> {
  const [usual, setUsual] = useState<Map<string, string>>(new Map());
  const groups = useMemo(() => {
    const byGroup = new Map<string, AttributeDifference[]>();
    for (const d of list ?? []) byGroup.set(`${d.service}\n${d.operation}`, [...byGroup.get(`${d.service}\n${d.operation}`) ?? [], d]);
    return [...byGroup.values()].slice(0, maxGroups);
  }, [list]);
  useEffect(() => {
    if (pair.sources.a.kind !== 'server') return;
    const abort = new AbortController();
    const end = millis(pair.a.begin) + pair.a.duration / 1e6;
    for (const group of groups) {
      const [{ sender, operation }] = group;
      const q = `{ service = ${quote(sender)}${operation && ` && name = ${quote(operation)}`} }`;
      get<Facets>('facets', { q, fields: group.map(fieldOf), values: 3, start: nanos(end - 3_600_000), end: nanos(end) }, { signal: abort.signal, maxAge: 60_000 }).then(({ data }) => {
        if (!abort.signal.aborted) setUsual((known) => new Map([...known, ...group.map((d): [string, string] => [fieldID(d), usualText(data, d)])]));
      }, () => undefined);
    }
    return () => abort.abort();
  }, [groups]);
  return usual;
}

function usualText(facets: Facets, d: AttributeDifference): string {
  const facet = facets.facets.find((f) => f.field === fieldOf(d));
  return facet ? facet.values.text.map((text, i) => `${text} ${percent(facet.values.count[i] / Math.max(1, facets.spans))}`).join(', ') : '';
}
