import type { ComponentChildren } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { Groups } from '../../../api/groups';
import { Button } from '../../../shell/controls';
import { about, count, percent } from '../../../shell/format';
import { useRovingRows } from '../../../shell/roving';
import { AnswerState, Empty, Messages, Partial, Progress } from '../../../shell/states';
import { t, tn } from '../../../shell/text';
import { view } from '../../../shell/url';
import { useRequest } from '../../../shell/use-request';
import type { TabProps } from '../tabs';
import { GroupTable } from './group-table';
import { KeyChoice } from './key-choice';
import { keysOf, ofTraces, orderOf, rowsOf } from './model';
import css from './groups.module.css';

const firstRows = 50;
const allRows = 1000;

interface GroupsProps extends Pick<TabProps, 'run' | 'onRun'> {
  /** The keys and what chooses them, instead of those of the URL. */
  fixed?: { keys: string[]; choice: ComponentChildren };
}

/** The matching spans in groups with the same values of one or two fields. */
export default function GroupsTab({ run, onRun, fixed }: GroupsProps) {
  const { by, sort } = view.value;
  const keys = fixed?.keys ?? keysOf(by, run.q);
  const order = orderOf(sort);
  const [limit, setLimit] = useState(firstRows);
  const of = ofTraces(keys) ? 'traces' : 'spans';
  const answer = useRequest<Groups>('groups', { q: run.q, start: run.start, end: run.end, by: keys.join(', '), of, sort: order, limit }, { maxAge: 300_000 });
  const { data, loading } = answer;
  const rows = useMemo(() => (data ? rowsOf(data) : []), [data]);
  const section = useRef<HTMLDivElement>(null);
  useRovingRows(section);
  return (
    <div class={css.tab}>
      <div class={css.head}>
        {fixed ? fixed.choice : <KeyChoice keys={keys} run={run} />}
        {data && <span class={css.facts}>{summary(data)}</span>}
      </div>
      <Progress active={loading} label={t('Counting groups')} />
      <div class={css.notice}>
        {data && data.share < 1 && <Partial>{t('Counts are estimates from a sample: {share} of the spans were examined.', { share: percent(data.share) })}</Partial>}
        {data && data.other > 0 && <Partial>{tn(data.other, '{n} span is in a group that was not counted on its own, because there are too many groups.', '{n} spans are in groups that were not counted on their own, because there are too many groups.', { n: count(data.other) })}</Partial>}
        <Messages messages={answer.messages} />
      </div>
      <AnswerState what={t('Groups')} answer={answer} class={css.notice} rows={8} />
      {data && rows.length === 0 && <div class={css.notice}><Empty title={t('No span matches in this time range.')} /></div>}
      {data && rows.length > 0 && <div ref={section}><GroupTable data={data} rows={rows} order={order} run={run} onRun={onRun} /></div>}
      {data && data.distinct > rows.length && (
        <div class={css.more}>
          {limit < allRows && <Button onClick={() => setLimit(allRows)}>{t('Show more groups')}</Button>}
          <span>{t('{shown} of {all} groups', { shown: count(rows.length), all: count(data.distinct) })}</span>
        </div>
      )}
    </div>
  );
}

/** "1,204 spans in 9 groups". */
function summary(data: Groups): string {
  const n = about(count(data.estimatedSpans), data.share < 1);
  const what = data.of === 'traces' ? tn(data.estimatedSpans, '{n} trace', '{n} traces', { n }) : tn(data.estimatedSpans, '{n} span', '{n} spans', { n });
  return tn(data.distinct, '{what} in {n} group', '{what} in {n} groups', { what, n: count(data.distinct) });
}
