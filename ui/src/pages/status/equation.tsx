import type { Balance } from '../../api/deployment';
import { classes } from '../../shell/controls';
import { count } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { t, tn } from '../../shell/text';
import css from './equation.module.css';
import page from './status.module.css';

/** The parts of the right side, without those that are 0 and say nothing. */
export function parts(b: Balance): { label: string; spans: number; bad?: boolean }[] {
  const onPurpose = b.dropped - b.lost;
  const all = [
    { label: t('stored'), spans: b.stored, always: b.sent === 0 }, { label: t('forwarded'), spans: b.sent, always: false }, { label: t('refused'), spans: b.refused, bad: true, always: true },
    { label: t('dropped on purpose'), spans: onPurpose, always: false }, { label: t('lost'), spans: b.lost, bad: true, always: true },
    { label: t('in queues'), spans: b.queued, always: true }, { label: t('held'), spans: b.held, always: true },
  ];
  if (b.verdict === 'in_progress') all.push({ label: t('in progress'), spans: b.difference, always: true });
  return all.filter((p) => p.always || p.spans !== 0).map(({ label, spans, bad }) => ({ label, spans, bad: bad && spans > 0 }));
}

/** Whether the pipelines pass on log records instead of spans. */
function ofLogs(b: Balance): boolean { return b.pipelines.every((p) => p.split('/')[0] === 'logs'); }

/** Whether the equation holds, and if it does not, why. */
export function verdictText(b: Balance): { text: string; kind: 'ok' | 'warn' | 'partial' } {
  const n = count(Math.abs(b.difference));
  switch (b.verdict) {
    case 'balanced': return { text: ofLogs(b) ? t('Balances: each log record has exactly one outcome.') : t('Balances: each span has exactly one outcome.'), kind: 'ok' };
    case 'in_progress': return { text: t('Balances: requests are being processed.'), kind: 'ok' };
    case 'twice': return { text: t('{n} spans were stored by one exporter and refused by another, so they count as both. Their senders resend them.', { n }), kind: 'warn' };
    case 'more': return { text: t('{n} more spans left than arrived: an earlier process left them in a queue on disk, or a processor creates spans.', { n }), kind: 'partial' };
    case 'unknown': return { text: t('Whether it balances is unknown: a processor is shared by pipelines with different numbers of exporters, and its counters are not separate.'), kind: 'partial' };
    default: return { text: t('Does not balance: {n} spans have no outcome. Please report this.', { n }), kind: 'warn' };
  }
}

/** The accounting equation of each group of pipelines. */
export function Equations({ balances }: { balances: Balance[] }) {
  if (balances.length === 0) return null;
  return (
    <section class={page.section}>
      <h3 class={page.heading}>{t('Where the spans went')}</h3>
      {balances.map((b) => <Equation key={b.pipelines.join()} b={b} />)}
    </section>
  );
}

function Equation({ b }: { b: Balance }) {
  const verdict = verdictText(b);
  return (
    <div class={css.balance}>
      <p class={css.name}>{tn(b.pipelines.length, 'Pipeline {names}', 'Pipelines {names}', { names: b.pipelines.join(', ') })}{b.ways > 1 && <span class={css.note}> {t('each span goes to {ways} exporters and counts once for each', { ways: b.ways })}</span>}</p>
      <dl class={css.equation}>
        <div class={css.term}><dd>{count(b.received)}</dd><dt>{t('received')}</dt></div>
        {parts(b).map((p, i) => (
          <div key={p.label} class={classes(css.term, p.bad && css.bad)}><span class={css.sign} aria-hidden="true">{i === 0 ? '=' : '+'}</span><dd>{count(p.spans)}</dd><dt>{p.label}</dt></div>
        ))}
      </dl>
      <p class={css.verdict}><Mark kind={verdict.kind} size={13} label="" /> {verdict.text}</p>
    </div>
  );
}
