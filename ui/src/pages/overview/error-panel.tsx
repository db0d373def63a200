import { useRef } from 'preact/hooks';
import type { ErrorGroup, Errors } from '../../api/errors';
import type { Change, Changes } from '../../api/types';
import { MiniBars } from '../../charts/sparkline';
import { NotCounted } from '../../errors/not-counted';
import { countText, secondLine, titleOf, trendText, uncounted } from '../../errors/trend';
import { allRequests } from '../../query/edit';
import { capable } from '../../shell/config';
import { classes } from '../../shell/controls';
import { count } from '../../shell/format';
import { Name } from '../../shell/name';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { AnswerState, Messages, Partial } from '../../shell/states';
import { t, Text } from '../../shell/text';
import { lowerFirst } from '../../shell/time-input';
import { Time } from '../../shell/time';
import { link } from '../../shell/url';
import type { RequestState } from '../../shell/use-request';
import css from './error-panel.module.css';

const maxGroups = 8;
const maxChanges = 10;

/** The right column: newest errors by group, and what changed. */
export function ErrorPanel({ errors, changes, start, end, rangeLabel }: { errors: RequestState<Errors>; changes: RequestState<Changes>; start: number; end: number; rangeLabel: string }) {
  return (
    <aside class={css.panel} aria-label={t('Errors and changes')}>
      <ErrorList errors={errors} start={start} end={end} />
      <ChangeList changes={changes} rangeLabel={rangeLabel} />
    </aside>
  );
}

function ErrorList({ errors, start, end }: { errors: RequestState<Errors>; start: number; end: number }) {
  const list = useRef<HTMLUListElement>(null);
  useRovingRows(list);
  const { data } = errors;
  const groups = data?.groups ?? [];
  return (
    <section>
      <div class={css.head}>
        <h2 class={css.title}>{t('Errors')}</h2>
        {groups.length > 0 && <span class={css.sub}>{groups.some((g) => g.trend.kind !== 'usual') ? t('largest growth first') : t('most common first')}</span>}
        {groups.length > 0 && <a class={css.all} href={link({ page: 'errors' })}>{t('All')}</a>}
      </div>
      <AnswerState what={t('Errors')} answer={errors} rows={4} height="72px" />
      {data && groups.length === 0 && <p class={css.nothing}>{t('No span failed in this time range.')}</p>}
      <ul ref={list}>
        {groups.slice(0, maxGroups).map((g) => <Group key={g.id} g={g} data={data!} start={start} end={end} />)}
      </ul>
      {data && groups.length > maxGroups && <p class={css.nothing}>{t('{maxGroups} of {omitted} groups', { maxGroups, omitted: count(groups.length + data.omitted) })}</p>}
      {data && <NotCounted data={data} />}
      <Messages messages={errors.messages} />
    </section>
  );
}

function Group({ g, data, start, end }: { g: ErrorGroup; data: Errors; start: number; end: number }) {
  const trend = trendText(g, end);
  const heading = titleOf(g);
  const second = secondLine(g);
  return (
    <li data-row class={css.group}>
      <a class={css.type} href={link({ page: 'errors' }, { error: g.id })} title={[heading, g.frame || g.operation].join(', ')}>{heading}</a>
      <span class={css.count}>{countText(g.count, data)}</span>
      <span class={css.text} title={g.message || g.operation}>{second}</span>
      <span class={css.facts}>
        <ServiceMark name={g.service} />
        {!trend && g.type && second !== g.operation && <Name class={css.operation} text={g.operation} />}
        <a class={classes(css.example, trend && css.grown)} href={link({ page: 'trace', id: g.traceID }, { span: g.spanID })} title={t('Open the newest example')}>
          <span class="visually-hidden">{t('Newest example of {heading}: ', { heading })}</span>
          {trend || <Time at={g.last} precision={0} onlyAge />}
        </a>
      </span>
      <span class={css.bars}><MiniBars values={g.points} width={76} height={16} color={trend ? 'var(--error-solid)' : undefined} unread={uncounted(data, start, end)} /></span>
    </li>
  );
}

function ChangeList({ changes, rangeLabel }: { changes: RequestState<Changes>; rangeLabel: string }) {
  const { data } = changes;
  return (
    <section class={css.changes}>
      <div class={css.head}><h2 class={css.title}>{t('Changes')}</h2><span class={css.sub}>{lowerFirst(rangeLabel)}</span>{capable('aggregates') && <a class={css.all} href={link({ page: 'explore' }, { q: allRequests, tab: 'times' })} title={t('Compare all services with yesterday or any other time')}>{t('Since yesterday')}</a>}</div>
      {changes.error && <AnswerState what={t('Changes')} answer={changes} />}
      {data && data.changes.length === 0 && <p class={css.nothing}>{t('No new version, instance, attribute or service.')}</p>}
      <ul>
        {data?.changes.slice(0, maxChanges).map((c) => <li key={c.at + c.service + c.kind + c.to} class={css.change}><Time at={c.at} precision={0} /><span class={css.what}><ServiceMark name={c.service} /> <ChangeText c={c} /></span></li>)}
      </ul>
      {data && data.changes.length > maxChanges && <p class={css.nothing}>{t('{maxChanges} of {changes}, newest first', { maxChanges, changes: data.changes.length })}</p>}
      {data && !data.complete && <Partial>{t('Not everything was checked: there may be more changes.')}</Partial>}
      <Messages messages={changes.messages} />
    </section>
  );
}

function ChangeText({ c }: { c: Change }) {
  switch (c.kind) {
    case 'version': return c.from ? <><Text of="version {from} → {to}" from={c.from} to={<b>{c.to}</b>} /></> : <><Text of="version {to}" to={<b>{c.to}</b>} /></>;
    case 'instances': return <><Text of="{from} → {to} instances" from={c.from || '0'} to={<b>{c.to}</b>} /></>;
    case 'attribute': return <><Text of="new attribute {to}" to={<code title={c.to}>{c.to}</code>} /></>;
    case 'service': return <>{t('appeared')}</>;
  }
}
