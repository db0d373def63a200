import { useState } from 'preact/hooks';
import type { Errors } from '../../api/errors';
import { GroupList } from '../../errors/group-list';
import type { Order } from '../../errors/trend';
import { AnswerState, Empty, Messages, Progress } from '../../shell/states';
import { t } from '../../shell/text';
import { useRequest } from '../../shell/use-request';
import type { TabProps } from './tabs';
import css from './span-table.module.css';

const firstGroups = 50;
const allGroups = 1000;

/** The failed ones of the matching spans, in groups. */
export default function ErrorsTab({ run }: Pick<TabProps, 'run'>) {
  const [limit, setLimit] = useState(firstGroups);
  const [order, setOrder] = useState<Order>('count');
  const answer = useRequest<Errors>('errors', { q: run.q, start: run.start, end: run.end, before: 1, limit, sort: order }, { maxAge: 300_000 });
  const { data } = answer;
  return (
    <>
      <Progress active={answer.loading} label={t('Grouping errors')} />
      <AnswerState what={t('Errors')} answer={answer} class={css.notice} rows={6} />
      {data && data.groups.length === 0 && <div class={css.notice}><Empty title={t('None of the matching spans failed in this time range.')} /><Messages messages={answer.messages} /></div>}
      {data && data.groups.length > 0 && <GroupList data={data} messages={answer.messages} run={run} groups={data.groups} order={order} onOrder={setOrder} more={limit < allGroups ? () => setLimit(allGroups) : undefined} />}
    </>
  );
}
