import { useMemo, useRef } from 'preact/hooks';
import type { Names } from '../../api/types';
import { count } from '../../shell/format';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { AnswerState, Empty, Failure, Partial } from '../../shell/states';
import { t } from '../../shell/text';
import { link } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import { spansOf } from '../service/queries';
import css from './services.module.css';

const maxServices = 500;

/** Names of services, for stores that do not count their requests. */
export function NameList() {
  const list = useRef<HTMLUListElement>(null);
  const answer = useRequest<Names>('values', { key: 'service', prefix: '', limit: maxServices }, { maxAge: 10_000 });
  const { data } = answer;
  useRovingRows(list);
  if (!data) return <AnswerState what={t('Services')} answer={answer} rows={8} />;
  return (
    <>
      <ul ref={list} class={css.list} aria-label={t('Services')}>
        {data.names.map((name) => <Item key={name} name={name} href={link({ page: 'explore' }, { q: spansOf(name) })} />)}
      </ul>
      {data.more && <Partial>{t('The first {n} services are listed. “Jump to” finds all of them.', { n: count(data.names.length) })}</Partial>}
    </>
  );
}

const maxFound = 50;

/** Services with a text in their names that the table leaves out. `alone`: it lists none. */
export function FoundNames({ text, without, alone }: { text: string; without: string[]; alone: boolean }) {
  const list = useRef<HTMLUListElement>(null);
  const { data, error, retry } = useRequest<Names>('values', { key: 'service', text, limit: maxFound }, { maxAge: 10_000 });
  useRovingRows(list);
  const names = useMemo(() => data?.names.filter((name) => name.toLowerCase().includes(text) && !without.includes(name)) ?? [], [data, text, without.length]);
  if (error && !data) return <Failure what={t('Services')} error={error} retry={retry} />;
  if (names.length === 0) return alone && data ? <Empty title={t('No service matches.')} /> : null;
  return (
    <>
      <p class={css.notice}>{t('Not among the busiest services of this time range:')}</p>
      <ul ref={list} class={css.list} aria-label={t('More services')}>{names.map((name) => <Item key={name} name={name} href={link({ page: 'service', name })} />)}</ul>
    </>
  );
}

function Item({ name, href }: { name: string; href: string }) {
  return (
    <li data-row class={css.item}>
      <a class={css.main} href={href}><ServiceMark name={name} strong /></a>
      <a class={css.other} href={link({ page: 'explore' }, { q: spansOf(name, 'error') })} aria-label={t('Errors of {name}', { name })}>{t('Errors')}</a>
    </li>
  );
}
