import { useRef, useState } from 'preact/hooks';
import type { Names } from '../../api/types';
import { Input } from '../../shell/controls';
import { count } from '../../shell/format';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { Empty, Failure, Partial, Skeleton } from '../../shell/states';
import { link } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import { serviceQuery } from '../overview/lead';
import css from './later.module.css';

const maxServices = 500;
const filterFrom = 12;

/** All services by name, each with links to its page, its traces and its failed spans. */
export function ServiceList() {
  const [filter, setFilter] = useState('');
  const list = useRef<HTMLUListElement>(null);
  const { data, error, retry } = useRequest<Names>('values', { key: 'service', prefix: '', limit: maxServices }, { maxAge: 10_000 });
  useRovingRows(list);
  if (error && !data) return <Failure what="Services" error={error} retry={retry} />;
  if (!data) return <Skeleton rows={8} />;
  if (data.names.length === 0) return <Empty title="No service has sent spans yet."><a href={link({ page: 'overview' })}>How to send spans</a></Empty>;
  const shown = data.names.filter((n) => n.toLowerCase().includes(filter.trim().toLowerCase()));
  return (
    <>
      {data.names.length >= filterFrom && (
        <Input
          icon="search" class={css.filter} aria-label="Filter services" placeholder="Filter services" value={filter} onInput={(e) => setFilter(e.currentTarget.value)}
          after={<span>{count(shown.length)} of {count(data.names.length)}</span>}
        />
      )}
      <ul ref={list} class={css.list} aria-label="Services">
        {shown.map((name) => (
          <li key={name} data-row class={css.item}>
            <a class={css.main} href={link({ page: 'service', name })}><ServiceMark name={name} strong /></a>
            <a class={css.side} href={link({ page: 'explore' }, { q: serviceQuery(name) })} aria-label={`Traces of ${name}`}>Traces</a>
            <a class={css.side} href={link({ page: 'explore' }, { q: serviceQuery(name, 'error') })} aria-label={`Errors of ${name}`}>Errors</a>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class={css.note}>No service matches.</p>}
      {data.more && <Partial>The first {count(data.names.length)} services are listed. The jump box finds all of them.</Partial>}
    </>
  );
}
