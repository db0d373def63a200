import { useEffect, useRef } from 'preact/hooks';
import type { ErrorGroup, Errors } from '../api/errors';
import { MiniBars } from '../charts/sparkline';
import type { Run } from '../pages/explore/run';
import { Badge, Button, classes, Segmented } from '../shell/controls';
import { count } from '../shell/format';
import { Icon } from '../shell/icons';
import { useRovingRows } from '../shell/roving';
import { ServiceMark } from '../shell/service-mark';
import { Messages } from '../shell/states';
import { t } from '../shell/text';
import { Time } from '../shell/time';
import { navigate, view } from '../shell/url';
import { GroupDetail } from './group-detail';
import { NotCounted } from './not-counted';
import { countText, secondLine, titleOf, trendText, uncounted, type Order } from './trend';
import css from './errors.module.css';

interface GroupListProps {
  data: Errors;
  messages: { msg: string }[];
  run: Run;
  /** The groups to list. */
  groups: ErrorGroup[];
  order: Order;
  onOrder: (order: Order) => void;
  /** Lists more groups; without it, there are no more. */
  more?: () => void;
}

/** Groups of errors; one is open and shows its details. */
export function GroupList({ data, messages, run, groups, order, onOrder, more }: GroupListProps) {
  const list = useRef<HTMLUListElement>(null);
  useRovingRows(list);
  const chosen = view.value.error;
  useEffect(() => { // a link to a group shows it
    if (chosen) list.current?.querySelector('[aria-expanded="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [data]);
  return (
    <>
      <div class={css.notes}>
        <NotCounted data={data} />
        <Messages messages={messages} />
      </div>
      <div class={css.order}>
        <Segmented<Order> label={t('Order')} value={order} onChange={onOrder} segments={[{ value: 'count', label: t('Most common first') }, { value: 'growth', label: t('Largest growth first') }]} />
      </div>
      <ul ref={list} class={css.list}>
        {groups.map((g) => <Row key={g.id} g={g} data={data} run={run} open={g.id === chosen} />)}
      </ul>
      {data.omitted > 0 && (
        <div class={css.more}>
          {more && <Button onClick={more}>{t('Show more groups')}</Button>}
          <span>{t('{shown} of {all} groups', { shown: count(data.groups.length), all: count(data.groups.length + data.omitted) })}</span>
        </div>
      )}
    </>
  );
}

function Row({ g, data, run, open }: { g: ErrorGroup; data: Errors; run: Run; open: boolean }) {
  const trend = trendText(g, run.to);
  const title = titleOf(g);
  const text = secondLine(g);
  return (
    <li class={classes(css.item, open && css.opened)}>
      <div class={css.row} data-row>
        <button type="button" class={css.toggle} aria-expanded={open} onClick={() => navigate({ error: open ? '' : g.id }, { replace: true })}>
          <Icon name={open ? 'chev' : 'right'} size={14} />
          <span class={css.title}>{title}</span>
        </button>
        <span class={css.message} title={text}>{text}</span>
        <span class={css.service}><ServiceMark name={g.service} /></span>
        <span class={css.frame} title={g.frame}>{g.frame}</span>
        <span class={css.trend}>{trend && <Badge kind={g.trend.kind === 'new' ? 'error' : 'warn'}>{trend}</Badge>}</span>
        <span class={css.bars}><MiniBars values={g.points} width={120} height={20} color={trend ? 'var(--error-solid)' : undefined} unread={uncounted(data, run.from, run.to)} /></span>
        <span class={css.count}>{countText(g.count, data)}</span>
        <span class={css.last}><Time at={g.last} precision={0} onlyAge /></span>
      </div>
      {open && <GroupDetail g={g} data={data} run={run} />}
    </li>
  );
}
