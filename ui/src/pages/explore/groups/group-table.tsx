import type { Groups } from '../../../api/groups';
import { canonical, fieldLabel } from '../../../query/field';
import { Button, classes } from '../../../shell/controls';
import { count, duration, percentile, share, short } from '../../../shell/format';
import { Icon } from '../../../shell/icons';
import { Name } from '../../../shell/name';
import { ServiceMark } from '../../../shell/service-mark';
import { t } from '../../../shell/text';
import { link, navigate } from '../../../shell/url';
import type { Run } from '../run';
import { onlyGroup, withoutGroup, type GroupRow, type Order } from './model';
import css from './groups.module.css';

interface GroupTableProps {
  data: Groups;
  rows: GroupRow[];
  order: Order;
  run: Run;
  onRun: (text: string) => void;
}

/** The groups, with their numbers as text and bars. */
export function GroupTable({ data, rows, order, run, onRun }: GroupTableProps) {
  const max = Math.max(1, ...rows.map((r) => r.p99));
  const time = Math.max(1, ...rows.map((r) => r.time));
  const spans = Math.max(1, data.estimatedSpans);
  const head = { order, by: data.of };
  return (
    <table class={css.table} aria-label={t('Groups by {keys}', { keys: data.by.map(fieldLabel).join(', ') })}>
      <thead>
        <tr>
          {data.by.map((field, i) => <th key={field} scope="col" class={i > 0 ? css.wide : undefined}>{fieldLabel(field)}</th>)}
          <Head {...head} id="count" label={data.of === 'traces' ? t('Traces') : t('Spans')} />
          <Head {...head} id="errors" label={t('Errors')} />
          <Head {...head} id="p50" label="p50" />
          <Head {...head} id="p95" label="p95" />
          <Head {...head} id="p99" label="p99" />
          <Head {...head} id="time" label={t('Sum of durations')} note={data.of === 'spans' ? t('A span includes the spans that it calls, so the sums of several groups overlap') : ''} />
          <th scope="col" class={css.actions}><span class="visually-hidden">{t('Actions')}</span></th>
        </tr>
      </thead>
      <tbody>
        {rows.map((r) => (
          <tr key={r.where} data-row>
            {r.values.map((v, i) => (
              <td key={i} class={i > 0 ? css.wide : undefined}>
                <Value field={data.by[i]} value={v} href={i === 0 ? link({ page: 'explore' }, { q: onlyGroup(run.q, r.where), of: data.of }) : undefined} />
                {i === 0 && r.values.length > 1 && <span class={css.second}><Value field={data.by[1]} value={r.values[1]} /></span>}
              </td>
            ))}
            <td class={css.number}><span>{short(r.count)}</span><Bar part={r.count / spans} failed={r.errors / spans} /></td>
            <td class={classes(css.number, css.errors, r.errors > 0 && css.failed)} title={count(r.errors)}>{r.errors > 0 && <span class={css.many}>{short(r.errors)}</span>}{share(r.errors / r.count)}</td>
            {([[css.p50, r.p50], [css.p95, r.p95], [css.p99, r.p99]] as const).map(([kind, ns]) => (
              <td key={kind} class={classes(css.number, kind)}><span>{percentile(ns)}</span><i class={css.track} aria-hidden="true"><i style={{ width: `${(ns / max) * 100}%` }} /></i></td>
            ))}
            <td class={classes(css.number, css.time)}><span>{duration(r.time)}</span><Bar part={r.time / time} /></td>
            <td class={css.actions}><Actions q={run.q} row={r} onRun={onRun} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const kinds: Partial<Record<Order, string>> = { p50: css.p50, p99: css.p99, errors: css.errors, time: css.time };

/** A column by which the server sorts. */
function Head({ id, label, order, note = '' }: { id: Order; label: string; order: Order; note?: string }) {
  const on = id === order;
  return (
    <th scope="col" class={classes(css.number, kinds[id])} aria-sort={on ? 'descending' : undefined}>
      <button type="button" class={css.sort} title={[note, t('Sort by {column}, the largest first', { column: label })].filter(Boolean).join('. ')} onClick={() => navigate({ sort: id === 'count' ? '' : id }, { replace: true })}>
        {label}{on && <Icon name="down" size={12} />}
      </button>
    </th>
  );
}

function Value({ field, value, href }: { field: string; value: string | null; href?: string }) {
  const text = value === null ? t('(no value)') : value || t('(empty)');
  const shown = value && canonical(field) === 'service' ? <ServiceMark name={value} /> : <Name class={classes(!value && css.none)} text={text} title="" />;
  return href ? <a class={css.open} href={href} title={t('Traces with {value}', { value: text })}>{shown}</a> : <span class={css.open} title={text}>{shown}</span>;
}

/** A share as a bar, the failed part of it in red. */
function Bar({ part, failed = 0 }: { part: number; failed?: number }) {
  return <i class={css.track} aria-hidden="true"><i style={{ width: `${part * 100}%` }} />{failed > 0 && <b style={{ left: `${(part - failed) * 100}%`, width: `max(2px, ${failed * 100}%)` }} />}</i>;
}

function Actions({ q, row, onRun }: { q: string; row: GroupRow; onRun: (text: string) => void }) {
  const name = row.values.map((v) => v ?? t('(no value)')).join(', ');
  const explain = row.errors > 0 ? t('Explain errors of {name}', { name }) : t('Explain durations of {name}', { name });
  return (
    <span class={css.buttons}>
      <Button kind="quiet" icon="plus" label={t('Only {name}', { name })} onClick={() => onRun(onlyGroup(q, row.where))} />
      <a class={css.explain} href={link({ page: 'explore' }, { q: onlyGroup(q, row.where), of: 'spans', tab: 'explain', sel: row.errors > 0 ? 'errors' : null })} aria-label={explain} title={explain}><Icon name="compare" /></a>
      <Button kind="quiet" icon="minus" label={t('Without {name}', { name })} onClick={() => onRun(withoutGroup(q, row.where))} />
    </span>
  );
}
