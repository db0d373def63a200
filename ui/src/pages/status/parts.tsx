import type { Account, ComponentState, Details, Queue } from '../../api/deployment';
import { slowNow } from '../../shell/clock';
import { classes } from '../../shell/controls';
import { bytes, count, duration, none, short } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { t, Text } from '../../shell/text';
import { Elapsed } from './elapsed';
import css from './status.module.css';

/** Components that do not work as they should, each once. */
export function badComponents(d: Details): ComponentState[] {
  const all = [...d.report.pipelines.flatMap((p) => p.components), ...d.report.beside].filter((c) => c.status !== 'ok');
  return all.filter((c, i) => all.findIndex((o) => o.component === c.component && o.kind === c.kind) === i);
}

/** Degraded components with their reasons, and a configuration that was not applied. */
export function Problems({ d }: { d: Details }) {
  const bad = badComponents(d);
  const reload = d.report.configuration;
  if (bad.length === 0 && !reload.problem) return null;
  return (
    <ul class={css.problems} aria-label={t('Problems')}>
      {bad.map((c) => (
        <li key={c.kind + c.component} class={css.problem}>
          <Mark kind="warn" size={13} label="" /> <Text of="{kind} {component} is {state} since {time}: {reason}" kind={c.kind} component={<b>{c.component}</b>} state={c.status} time={<Elapsed since={c.since} now={slowNow.value} />} reason={<code>{c.reason || none}</code>} />
        </li>
      ))}
      {reload.problem && (
        <li class={css.problem}><Mark kind="warn" size={13} label="" /> <Text of="The last configuration change was not applied; the previous configuration is in use: {problem}" problem={<code>{reload.problem}</code>} /></li>
      )}
    </ul>
  );
}

/** Words for the reasons of refusals and drops. */
export function reasonText(reason: string): string {
  const texts: Record<string, string> = {
    policy: t('on purpose'), evicted: t('to make space'), stopping: t('the process stopped'), overflow: t('the queue was full'), permanent: t('rejected as invalid'), too_large: t('too large'),
    over_budget: t('no memory left'), overloaded: t('overloaded'), unavailable: t('not available'), deadline: t('too slow'), canceled: t('the client disconnected'), lost: t('damaged files'), bug: t('a bug'),
  };
  return texts[reason] ?? reason;
}

/** Spans of each processor, exporter and extension by outcome. */
export function Accounts({ d }: { d: Details }) {
  const all = d.accounts.filter((a) => a.kind !== 'receiver');
  if (all.length === 0) return null;
  return (
    <section class={css.section}>
      <h3 class={css.heading}>{t('Processors and exporters')}</h3>
      <div class={css.scroll}>
        <table class={css.table}>
          <thead>
            <tr>
              <th scope="col">{t('Component')}</th><th scope="col" class={classes(css.number, css.wide)}>{t('In')}</th><th scope="col" class={css.number}>{t('Passed on')}</th>
              <th scope="col" class={css.number}>{t('Dropped')}</th><th scope="col" class={classes(css.number, css.wide)}>{t('Refused')}</th><th scope="col" class={classes(css.number, css.wide)}>{t('Waiting')}</th>
              <th scope="col" class={css.wide}>{t('Why dropped or refused')}</th>
            </tr>
          </thead>
          <tbody>{all.map((a) => <AccountRow key={a.kind + a.component} a={a} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

function AccountRow({ a }: { a: Account }) {
  const cell = (n: number, bad = false, wide = true) => <td class={classes(css.number, wide && css.wide, bad && n > 0 ? css.bad : n === 0 && css.faint)} title={count(n)}>{short(n)}</td>;
  return (
    <tr>
      <th scope="row"><span class={css.faint}>{a.kind} </span>{a.component}</th>
      {cell(a.in)}{cell(a.sent + a.accepted, false, false)}{cell(a.dropped, a.lost > 0, false)}{cell(a.refused, true)}{cell(a.queued + a.held)}
      <td class={classes(css.wide, css.reasons)}>{a.reasons.map((r) => t('{spans} {reason}', { spans: short(r.spans), reason: reasonText(r.reason) })).join(', ')}</td>
    </tr>
  );
}

/** Sending queues: what they hold, how old it is, and how much they may hold. */
export function Queues({ queues, hidden }: { queues: Queue[]; hidden: boolean }) {
  return (
    <section class={css.section}>
      <h3 class={css.heading}>{t('Sending queues')}</h3>
      <div class={css.scroll}>
        <table class={css.table}>
          <thead>
            <tr>
              <th scope="col">{t('Exporter')}</th><th scope="col" class={css.wide}>{t('Kept in')}</th><th scope="col" class={css.number}>{t('Waiting')}</th><th scope="col" class={css.number}>{t('Oldest')}</th>
              <th scope="col" class={css.number}>{t('Used')}</th><th scope="col" class={css.wide}>{t('When full')}</th>
            </tr>
          </thead>
          <tbody>
            {queues.map((q) => (
              <tr key={q.component}>
                <th scope="row">{q.component}</th>
                <td class={css.wide}>{q.storage === 'disk' ? t('files') : t('memory')}</td>
                <td class={css.number}>{hidden ? none : short(q.spans)}</td>
                <td class={css.number}>{q.age > 0 ? duration(q.age) : none}</td>
                <td class={css.number}>{hidden ? none : bytes(q.bytes)} <span class={css.faint}>{t('of {max}', { max: bytes(q.maxBytes) })}{q.maxSize > 0 && t(', {size} of {max} {unit}', { size: count(q.size), max: count(q.maxSize), unit: q.sizer })}</span></td>
                <td class={css.wide}>{q.overflow === 'block' ? t('senders wait') : q.overflow === 'drop_oldest' ? t('the oldest are dropped') : t('senders are refused')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
