import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ErrorGroup, Errors } from '../api/errors';
import { MiniBars } from '../charts/sparkline';
import type { Run } from '../pages/explore/run';
import { Badge, Button, classes } from '../shell/controls';
import { count } from '../shell/format';
import { Icon } from '../shell/icons';
import { useRovingRows } from '../shell/roving';
import { ServiceMark } from '../shell/service-mark';
import { Messages, Partial } from '../shell/states';
import { t, Text } from '../shell/text';
import { Time } from '../shell/time';
import { navigate, view } from '../shell/url';
import { GroupDetail } from './group-detail';
import { groupID, orderGroups, secondLine, titleOf, trendOf } from './trend';
import css from './errors.module.css';

interface GroupListProps {
  data: Errors;
  messages: { msg: string }[];
  run: Run;
  /** The groups to list. */
  groups: ErrorGroup[];
  /** Lists more groups; without it, there are no more. */
  more?: () => void;
}

/** Groups of errors; one is open and shows its details. */
export function GroupList({ data, messages, run, groups, more }: GroupListProps) {
  const list = useRef<HTMLUListElement>(null);
  useRovingRows(list);
  const ordered = useMemo(() => orderGroups({ ...data, groups }, run.from, run.to), [data, groups, run]);
  const chosen = view.value.error;
  useEffect(() => { // a link to a group shows it
    if (chosen) list.current?.querySelector('[aria-expanded="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [data]);
  return (
    <>
      <div class={css.notes}>
        {!data.complete && <Partial><Text of="The newest {n} failed spans were examined, back to {time}. Groups that occurred only before that are missing." n={count(data.examined)} time={<Time at={data.since} precision={1} />} /></Partial>}
        {data.before && !data.before.complete && <Partial><Text of="Of the time before, the newest {n} failed spans were examined, back to {time}." n={count(data.before.examined)} time={<Time at={data.before.since} precision={1} />} /></Partial>}
        <Messages messages={messages} />
      </div>
      <ul ref={list} class={css.list}>
        {ordered.map((g) => <Row key={groupID(g)} g={g} data={data} run={run} open={groupID(g) === chosen} />)}
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
  const trend = trendOf(g, data, run.from, run.to);
  const id = groupID(g);
  const title = titleOf(g);
  const text = secondLine(g);
  return (
    <li class={classes(css.item, open && css.opened)}>
      <div class={css.row} data-row>
        <button type="button" class={css.toggle} aria-expanded={open} onClick={() => navigate({ error: open ? '' : id }, { replace: true })}>
          <Icon name={open ? 'chev' : 'right'} size={14} />
          <span class={css.title}>{title}</span>
        </button>
        <span class={css.message} title={text}>{text}</span>
        <span class={css.service}><ServiceMark name={g.service} /></span>
        <span class={css.frame} title={g.frame}>{g.frame}</span>
        <span class={css.trend}>{trend === 'new' && <Badge kind="error">{t('new')}</Badge>}{trend === 'growing' && <Badge kind="warn">{t('growing')}</Badge>}</span>
        <span class={css.bars}><MiniBars values={g.points} width={120} height={20} color={trend === 'usual' ? undefined : 'var(--error-solid)'} /></span>
        <span class={css.count}>{count(g.count)}</span>
        <span class={css.last}><Time at={g.last} precision={0} onlyAge /></span>
      </div>
      {open && <GroupDetail g={g} data={data} run={run} />}
    </li>
  );
}
