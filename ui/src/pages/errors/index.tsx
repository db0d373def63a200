import { useState } from 'preact/hooks';
import type { Errors } from '../../api/errors';
import { GroupList } from '../../errors/group-list';
import type { Order } from '../../errors/trend';
import { Button } from '../../shell/controls';
import { count } from '../../shell/format';
import { ServiceMark } from '../../shell/service-mark';
import { AnswerState, Empty, Messages, Progress } from '../../shell/states';
import { t } from '../../shell/text';
import { useTitle } from '../../shell/title';
import { link, navigate, view } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import { useRun } from '../explore/run';
import { servicesOf, summaryOf } from './summary';
import css from '../../errors/errors.module.css';

const firstGroups = 100;
const allGroups = 1000;
const shownServices = 12;

/** The page `/errors`: failed spans of all services, in groups. */
export default function ErrorsPage() {
  useTitle(t('Errors'));
  const { run, again } = useRun();
  const [limit, setLimit] = useState(firstGroups);
  const [service, setService] = useState('');
  const [order, setOrder] = useState<Order>('count');
  const answer = useRequest<Errors>('errors', { q: run.q, start: run.start, end: run.end, before: 1, limit, sort: order }, { maxAge: 60_000 });
  const { data } = answer;
  const services = data ? servicesOf(data.groups) : [];
  const known = services.some((s) => s.name === service);
  const groups = (data?.groups ?? []).filter((g) => !known || g.service === service);
  return (
    <div class={css.page}>
      <Progress active={answer.loading} label={t('Grouping errors')} />
      <div class={css.lead}>
        <h1>{data ? summaryOf(data) : t('Errors')}</h1>
        {run.q && (
          <p class={css.limited}>
            <span>{t('Only spans that match')}</span><code>{run.q}</code>
            <Button kind="quiet" icon="x" label={t('Errors of all spans')} onClick={() => navigate({ q: '', error: '' })} />
          </p>
        )}
        {services.length > 1 && (
          <div class={css.services} role="group" aria-label={t('Services with errors')}>
            {services.slice(0, shownServices).map((s) => (
              <Button key={s.name} aria-pressed={s.name === service} onClick={() => setService(s.name === service ? '' : s.name)}><ServiceMark name={s.name} /><span class={css.number}>{count(s.count)}</span></Button>
            ))}
          </div>
        )}
      </div>
      <AnswerState what={t('Errors')} answer={{ ...answer, retry: again }} class={css.notes} rows={8} height="48px" />
      {data && data.groups.length === 0 && (
        <div class={css.notes}>
          <Empty title={t('No span with status error started in this time range.')}>
            <a href={link({ page: 'errors' }, { q: view.value.q, range: { from: 'now-24h', to: 'now' } })}>{t('Show the last 24 hours')}</a>
            <a href={link({ page: 'explore' }, { q: view.value.q })}>{t('Explore all spans')}</a>
          </Empty>
          <Messages messages={answer.messages} />
        </div>
      )}
      {data && data.groups.length > 0 && <GroupList data={data} messages={answer.messages} run={run} groups={groups} order={order} onOrder={setOrder} more={limit < allGroups ? () => setLimit(allGroups) : undefined} />}
    </div>
  );
}
