import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, endedEarly, stream, type Params } from '../../api/client';
import type { Nanos, SearchLine, TraceSummary } from '../../api/types';
import { Segmented } from '../../shell/controls';
import { cutsOf } from '../../shell/cut';
import { duration, millis } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { Name } from '../../shell/name';
import { useRovingRows } from '../../shell/roving';
import { Failure, Skeleton } from '../../shell/states';
import { t } from '../../shell/text';
import { Time } from '../../shell/time';
import { link } from '../../shell/url';
import type { RoleName } from '../../api/service';
import { roleQuery, slower } from './queries';
import css from './service.module.css';

const most = 8;
const fields = ['name', 'statusMessage'];

interface Found {
  traces: TraceSummary[];
  error: ApiError | null;
  reading: boolean;
}

/** The newest traces of a search; null searches nothing. */
function useTraces(q: string | null, start: Nanos, end: Nanos): Found & { retry: () => void } {
  const [found, setFound] = useState<Found>({ traces: [], error: null, reading: true });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (q === null) return;
    const abort = new AbortController();
    const traces: TraceSummary[] = [];
    const params: Params = { q: `${q} | select(${fields.join(', ')})`, start, end, limit: most };
    setFound({ traces: [], error: null, reading: true });
    const done = (error: ApiError | null): void => { if (!abort.signal.aborted) setFound({ traces, error, reading: false }); };
    const line = (l: SearchLine): void => {
      if (l.trace) traces.push(l.trace);
      if (l.error) throw new ApiError(l.error.code, l.error.msg);
    };
    stream<SearchLine>('search', params, line, abort.signal).then(() => done(null), (e: unknown) => done(e instanceof ApiError ? e : new ApiError(0, endedEarly)));
    return () => abort.abort();
  }, [q, start, end, attempt]);
  return { ...found, retry: () => setAttempt((n) => n + 1) };
}

interface ExamplesProps {
  service: string;
  role: RoleName;
  /** p95 of the service in nanoseconds. */
  p95: number | null;
  start: Nanos;
  end: Nanos;
}

/** The newest failed, and the newest slow spans of a service, with links to their traces. */
export function Examples({ service, role, p95, start, end }: ExamplesProps) {
  const [kind, setKind] = useState<'failing' | 'slow'>('failing');
  const list = useRef<HTMLUListElement>(null);
  useRovingRows(list);
  const q = kind === 'failing' ? roleQuery(service, role, 'error') : p95 === null ? null : roleQuery(service, role, slower(p95));
  const { traces, error, reading, retry } = useTraces(q, start, end);
  const texts = useMemo(() => textsApart(traces), [traces]);
  const cuts = useMemo(() => cutsOf(texts.values()), [texts]);
  return (
    <section class={css.side} aria-label={t('Examples')}>
      <div class={css.sideHead}>
        <h2>{t('Examples')}</h2><span class={css.grow} />
        <Segmented label={t('Examples')} value={kind} onChange={setKind} segments={[{ value: 'failing', label: t('Failing') }, { value: 'slow', label: t('Slow'), title: t('At least as slow as p95') }]} />
      </div>
      {error && <Failure what={t('Examples')} error={error} retry={retry} />}
      {reading && q !== null && <Skeleton rows={4} height="28px" />}
      {!reading && !error && traces.length === 0 && <p class={css.empty}>{kind === 'failing' ? t('Nothing failed in this time range.') : t('Nothing is slow in this time range.')}</p>}
      <ul ref={list}>
        {traces.map((trace) => <Example key={trace.traceID} trace={trace} text={texts.get(trace) ?? ''} cut={cuts.get(texts.get(trace) ?? '')} q={q ?? ''} />)}
      </ul>
      {q !== null && traces.length > 0 && <p class={css.empty}><a href={link({ page: 'explore' }, { q })}>{t('All traces')}</a></p>}
    </section>
  );
}

/** Name, message and root of an example. */
function partsOf(trace: TraceSummary): string[] {
  const name = trace.fields?.name?.[0] ?? trace.rootName;
  const root = trace.rootName === name ? '' : t('in {root}', { root: trace.rootName });
  return [name, trace.fields?.statusMessage?.find(Boolean) ?? '', root];
}

/** What tells examples apart: parts that all of them share are left out. Where all are the same, the message says more than the name. */
export function textsApart(traces: TraceSummary[]): Map<TraceSummary, string> {
  const parts = traces.map(partsOf);
  const differ = [0, 1, 2].filter((k) => parts.some((p) => p[k] !== parts[0][k]));
  const shown = differ.length > 0 ? differ : [1];
  return new Map(traces.map((trace, i) => [trace, shown.map((k) => parts[i][k]).filter(Boolean).join(', ') || parts[i][0]]));
}

function Example({ trace, text, cut, q }: { trace: TraceSummary; text: string; cut?: number; q: string }) {
  return (
    <li data-row class={css.example}>
      <Time at={trace.match} precision={1} />
      <a class={css.exampleName} href={link({ page: 'trace', id: trace.traceID }, { span: trace.matched?.ids[0] ?? '', search: q })} title={partsOf(trace).filter(Boolean).join(', ')}>{trace.errors > 0 && <Mark kind="error" size={12} label={t('failed')} />}<Name text={text} cut={cut} title="" /></a>
      <span class={css.number} title={t('Duration of the trace, which started at {time}', { time: new Date(millis(trace.start)).toISOString() })}>{duration(trace.duration)}</span>
    </li>
  );
}
