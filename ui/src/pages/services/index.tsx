import { useState } from 'preact/hooks';
import type { Changes, Services } from '../../api/types';
import { Button, Input, Segmented } from '../../shell/controls';
import { count } from '../../shell/format';
import { isRelative } from '../../shell/range';
import { AnswerState, Empty, Failure, Messages, Progress } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { useTitle } from '../../shell/title';
import { link, navigate, view } from '../../shell/url';
import { rangeParams, useRequest } from '../../shell/use-request';
import { isCompared, judge, type ServiceHealth } from '../overview/health';
import { ServiceTable } from '../overview/service-table';
import { FoundNames, NameList } from './name-list';
import css from './services.module.css';

const every = 30_000;
const changesEvery = 120_000;

/** Rows with charts that are drawn at once. */
const pageSize = 200;

type Order = 'abnormal' | 'name' | 'time';

/** `/services`, and the original's `/monitor`: all services with rate, errors and durations. */
export default function ServicesPage() {
  useTitle(t('Services'));
  const { range, sort } = view.value;
  const [filter, setFilter] = useState('');
  const [length, setLength] = useState(pageSize);
  const refresh = isRelative(range);
  const answer = useRequest<Services>('services', (now) => rangeParams(range, now), { every: refresh ? every : 0 });
  const changes = useRequest<Changes>('changes', (now) => rangeParams(range, now), { every: refresh ? changesEvery : 0 });
  const { data, error } = answer;
  if (error?.status === 501) return <div class={css.page}><h1 class={css.sentence}>{t('Services')}</h1><Failure what={t('Numbers')} error={error} /><NameList /></div>;
  if (!data) return <div class={css.page}><h1 class={css.sentence}>{t('Services')}</h1><AnswerState what={t('Services')} answer={answer} rows={12} /></div>;
  const judged = judge(data);
  const order: Order = sort === 'name' || sort === 'time' ? sort : 'abnormal';
  const needle = filter.trim().toLowerCase();
  const shown = ordered(judged, order).filter((s) => s.name.toLowerCase().includes(needle));
  const bad = judged.filter((s) => s.state !== 'normal' && s.state !== 'ended').length;
  const more = needle !== '' && answer.messages.length > 0; // the answer has the busiest services only
  const first = isCompared(data) ? t('most unusual') : t('highest share of errors');
  return (
    <div class={css.page}>
      <Progress active={answer.loading} label={t('Loading services')} />
      <div class={css.head}>
        <h1 class={css.sentence}>{tn(judged.length, '{n} service', '{n} services', { n: count(judged.length) })}{bad > 0 && <span class={css.note}>{t('{n} unusual', { n: count(bad) })}</span>}</h1>
        <span class={css.grow} />
        <Segmented
          label={t('Order')} value={order} onChange={(o) => navigate({ sort: o === 'abnormal' ? '' : o }, { replace: true })}
          segments={[{ value: 'abnormal', label: t('Unusual first') }, { value: 'time', label: t('Busiest first') }, { value: 'name', label: t('By name') }]}
        />
        <Input icon="search" class={css.filter} aria-label={t('Filter services')} placeholder={t('Filter services')} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} after={<span>{t('{n} of {all}', { n: count(shown.length), all: count(judged.length) })}</span>} />
      </div>
      <AnswerState what={t('Services')} answer={answer} class={css.notice} />
      <div class={css.notice}><Messages messages={answer.messages} /></div>
      {judged.length === 0
        ? <div class={css.notice}><Empty title={t('No service has sent spans in this time range.')}><a href={link({ page: 'overview' })}>{t('How to send spans')}</a><a href={link({ page: 'status' })}>{t('Check the receivers')}</a></Empty></div>
        : shown.length === 0
          ? !more && <div class={css.notice}><Empty title={t('No service matches.')} /></div>
          : <ServiceTable services={shown.slice(0, length)} data={data} changes={changes.data?.changes ?? []} order={order === 'abnormal' ? first : order === 'time' ? t('busiest') : t('A to Z')} />}
      {more && <FoundNames text={needle} without={judged.map((s) => s.name)} alone={shown.length === 0} />}
      {shown.length > length && <div class={css.more}><Button onClick={() => setLength(length + pageSize)}>{t('Show more')}</Button><span>{t('{n} of {all}', { n: count(length), all: count(shown.length) })}</span></div>}
    </div>
  );
}

function ordered(list: ServiceHealth[], order: Order): ServiceHealth[] {
  if (order === 'name') return [...list].sort((a, b) => (a.name < b.name ? -1 : 1));
  if (order === 'time') return [...list].sort((a, b) => b.rate - a.rate || (a.name < b.name ? -1 : 1));
  return list;
}
