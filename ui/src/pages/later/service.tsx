import { useRef } from 'preact/hooks';
import type { Names, Services } from '../../api/types';
import { duration, none, rate, share } from '../../shell/format';
import { ingest } from '../../shell/ingest';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { Failure, Partial } from '../../shell/states';
import { link, view } from '../../shell/url';
import { rangeParams, useRequest } from '../../shell/use-request';
import { judge, periods } from '../overview/health';
import { serviceQuery } from '../overview/lead';
import { Frame } from './frame';
import css from './later.module.css';

const maxOperations = 200;

/** `/services/{name}`: the numbers of a service in one line, its traces, and its operations. */
export default function ServicePage() {
  const { route, range } = view.value;
  const name = route.page === 'service' ? route.name : '';
  const services = useRequest<Services>('services', (now) => rangeParams(range, now));
  const health = services.data && judge(services.data, periods(services.data, ingest.value.data?.oldest ?? '')).find((s) => s.name === name);
  const explore = (more = ''): string => link({ page: 'explore' }, { q: serviceQuery(name, more) });
  const summary = health?.series.summary;
  return (
    <Frame
      title={name} sentence={<ServiceMark name={name} inferred={health?.inferred} />}
      note="The page of a service, with its charts, callers and calls, comes in a later version. Until then, its traces and operations:"
    >
      {summary && health && (
        <p class={css.facts}>
          <span><b>{rate(health.rate)}</b> requests/s</span><span><b>{share(health.errorShare)}</b> failed</span>
          <span>p50 <b>{summary.p50 === null ? none : duration(summary.p50)}</b></span>
          <span>p95 <b>{summary.p95 === null ? none : duration(summary.p95)}</b></span>
          <span>p99 <b>{summary.p99 === null ? none : duration(summary.p99)}</b></span>
        </p>
      )}
      <p class={css.links}>
        <a href={explore()}>Newest traces</a>
        <a href={explore('error')}>Failed spans</a>
        {summary?.p95 != null && <a href={explore(`duration >= ${Math.floor(summary.p95 / 1e3)}us`)}>Slowest, from {duration(summary.p95)}</a>}
      </p>
      <Operations service={name} />
    </Frame>
  );
}

function Operations({ service }: { service: string }) {
  const list = useRef<HTMLUListElement>(null);
  const { data, error, retry } = useRequest<Names>('values', { key: 'name', service, limit: maxOperations });
  useRovingRows(list);
  const query = (operation: string, more = ''): string => link({ page: 'explore' }, { q: serviceQuery(service, `name = ${JSON.stringify(operation)}${more}`) });
  if (error && !data) return <Failure what="Operations" error={error} retry={retry} />;
  return (
    <>
      <h2 class={css.heading}>Operations</h2>
      {data?.names.length === 0 && <p class={css.note}>No operation is known. The service has sent no spans, or they have expired.</p>}
      <ul ref={list} class={css.list} aria-label="Operations">
        {data?.names.map((n) => (
          <li key={n} data-row class={css.item}>
            <a class={css.main} href={query(n)} title={n}>{n}</a>
            <a class={css.side} href={query(n, ' && error')} aria-label={`Errors of ${n}`}>Errors</a>
          </li>
        ))}
      </ul>
      {data?.more && <Partial>The first {data.names.length} operations are listed.</Partial>}
    </>
  );
}
