import { useEffect, useState } from 'preact/hooks';
import { stream, tenant } from '../api/client';
import type { MissingTrace } from '../api/deployment';
import type { Ingest, SearchLine } from '../api/types';
import { slowNow } from '../shell/clock';
import { config } from '../shell/config';
import { Button } from '../shell/controls';
import { nanos } from '../shell/format';
import { Mark } from '../shell/icons';
import { hiddenFromTenants } from '../shell/ingest';
import { recentTraces } from '../shell/recent';
import { Empty, Progress } from '../shell/states';
import { t, Text } from '../shell/text';
import { link } from '../shell/url';
import { useRequest } from '../shell/use-request';
import { leadOf } from './sampling/sentence';
import { ageFact, arrivalFact, formFact, isNear, nearQuery, type Fact } from './trace-missing-facts';
import css from './trace.module.css';

interface Props {
  id: string;
  /** The server refuses the id. */
  malformed: boolean;
  /** The page looks for late spans. */
  searching: boolean;
  retry: () => void;
}

/** A trace that is not stored: what is known about it, and what the page does about it. */
export default function TraceMissing({ id, malformed, searching, retry }: Props) {
  const form = formFact(id);
  const invalid = malformed || form?.mark === 'error';
  const near = useNear(id);
  const facts = useFacts(id, invalid);
  return (
    <div class={css.message} role="status">
      <Empty title={<span role="heading" aria-level={1}><Text of="Trace {id} not found" id={<code>{id}</code>} /></span>}>
        <ul class={css.facts} aria-label={t('What is known')}>
          {[...(form ? [form] : []), ...facts].map((f) => <li key={f.text}><Mark kind={f.mark} size={13} label="" /><span>{f.text}</span></li>)}
          {near.length > 0 && <li><Mark kind="warn" size={13} label="" /><span>{t('Stored traces with almost the same ID:')}{near.map((n) => <> <a key={n} href={link({ page: 'trace', id: n })}><code>{n}</code></a></>)}</span></li>}
        </ul>
        {!invalid && <p class={css.why}>{searching ? t('Looking for late spans.') : t('No spans arrived in the last 30 seconds.')}</p>}
        {!searching && !invalid && <Button icon="refresh" onClick={retry}>{t('Check again')}</Button>}
        {!invalid && <a href={link({ page: 'sampling' }, { ask: { service: '', operation: '', trace: id } })}>{t('Why is it missing?')}</a>}
        <a href={link({ page: 'explore' })}>{t('Search for traces')}</a>
      </Empty>
      <Progress active={searching && !invalid} label={t('Looking for late spans')} />
    </div>
  );
}

/** What is known of arrival, age, tenant and sampling. */
function useFacts(id: string, invalid: boolean): Fact[] {
  const ingest = useRequest<Ingest>('ingest', {}, { maxAge: 60_000 });
  const sampling = useRequest<MissingTrace>(invalid ? null : 'sampling/explain', { service: '', operation: '', trace: id });
  if (invalid) return [];
  const facts: Fact[] = [];
  if (ingest.data) {
    if (!hiddenFromTenants()) facts.push(arrivalFact(ingest.data));
    facts.push(ageFact(ingest.data, slowNow.value));
  }
  if (config.value?.capabilities.tenancy || tenant.value) {
    facts.push({ mark: 'partial', text: tenant.value ? t('Only traces of tenant {tenant} were searched.', { tenant: tenant.value }) : t('Only traces of your tenant were searched.') });
  }
  // That nothing has arrived is said already.
  if (sampling.data && sampling.data.verdict !== 'stored' && !sampling.data.causes.some((c) => c.code === 'no_spans')) {
    const { text, mark } = leadOf(sampling.data);
    facts.push({ mark: mark ?? 'partial', text: `${text}.` });
  }
  return facts;
}

const compared = 200;
const maxNear = 5;
const day = 86_400_000;

/** Ids of stored traces that are almost the same: of those opened in this browser, and of the last day. */
function useNear(id: string): string[] {
  const [found, setFound] = useState<string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const near = new Set(recentTraces.value.map((r) => r.id).filter((other) => isNear(id, other)));
    setFound([...near].slice(0, maxNear));
    const line = (l: SearchLine): void => { if (l.trace && isNear(id, l.trace.traceID)) near.add(l.trace.traceID); };
    const now = Date.now();
    const q = nearQuery(id);
    if (q) {
      stream<SearchLine>('search', { q, start: nanos(now - day), end: nanos(now), limit: compared }, line, abort.signal)
        .then(() => setFound([...near].slice(0, maxNear)), () => undefined);
    }
    return () => abort.abort();
  }, [id]);
  return found;
}
