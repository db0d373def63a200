import { useRef } from 'preact/hooks';
import type { Names } from '../../api/types';
import { count } from '../../shell/format';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { Failure, Partial, Skeleton } from '../../shell/states';
import { t } from '../../shell/text';
import { link } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import { spansOf } from '../service/queries';
import css from './services.module.css';

const maxServices = 500;

/** Names of services, for stores that do not count their requests. */
export function NameList() {
  const list = useRef<HTMLUListElement>(null);
  const { data, error, retry } = useRequest<Names>('values', { key: 'service', prefix: '', limit: maxServices }, { maxAge: 10_000 });
  useRovingRows(list);
  if (error && !data) return <Failure what={t('Services')} error={error} retry={retry} />;
  if (!data) return <Skeleton rows={8} />;
  return (
    <>
      <ul ref={list} class={css.list} aria-label={t('Services')}>
        {data.names.map((name) => (
          <li key={name} data-row class={css.item}>
            <a class={css.main} href={link({ page: 'explore' }, { q: spansOf(name) })}><ServiceMark name={name} strong /></a>
            <a class={css.other} href={link({ page: 'explore' }, { q: spansOf(name, 'error') })} aria-label={t('Errors of {name}', { name })}>{t('Errors')}</a>
          </li>
        ))}
      </ul>
      {data.more && <Partial>{t('The first {n} services are listed. The jump box finds all of them.', { n: count(data.names.length) })}</Partial>}
    </>
  );
}
