import type { ProcessExplanation, MissingTrace, ProcessAnswer, Stage } from '../../api/deployment';
import { classes } from '../../shell/controls';
import { fixed, share } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { t, Text } from '../../shell/text';
import { stageName, verdictText } from './sentence';
import css from './stages.module.css';

/** The places that a trace passes, with what each does with it. */
export function Stages({ m }: { m: MissingTrace }) {
  const several = m.processes.length > 1;
  const empty = m.processes.every((p) => !p.data || p.data.stages.length === 0);
  return (
    <section class={css.section}>
      <h2 class={css.heading}>{t('What happens to such a trace')}</h2>
      {empty && <p class={css.note}>{m.service ? t('No client gets a strategy here, and no processor drops spans on purpose.') : t('No processor drops spans on purpose. Enter the service to see its strategy.')}</p>}
      <ol class={css.stages}>
        {m.processes.map((p, i) => (p.data ? <ProcessStages key={p.address} m={m} answer={p} data={p.data} index={i} several={several} /> : <Silent key={p.address} p={p} />))}
        <li class={classes(css.stage, m.verdict !== 'stored' && css.off)}>
          <span class={css.mark}>{m.verdict === 'stored' ? <Mark kind="ok" size={15} /> : <span class={css.open} />}</span>
          <span><span class={css.name}>{t('Stored')}</span></span><span /><span class={css.value}>{storedText(m)}</span>
        </li>
      </ol>
    </section>
  );
}

function storedText(m: MissingTrace): string {
  if (m.stored.trace === 'found') return t('yes');
  if (m.stored.trace === 'unreadable') return t('unknown');
  return m.trace ? t('no') : t('not known without a trace ID');
}

function Silent({ p }: { p: ProcessAnswer<ProcessExplanation> }) {
  return <li class={css.stage}><span class={css.mark}><Mark kind="warn" size={15} /></span><span class={css.name}>{p.address.replace(/^https?:\/\//, '')}</span><span class={css.where}><Text of="No response: {error}" error={<code>{p.error}</code>} /></span><span class={css.value}>{t('unknown')}</span></li>;
}

function ProcessStages({ m, answer, data, index, several }: { m: MissingTrace; answer: ProcessAnswer<ProcessExplanation>; data: ProcessExplanation; index: number; several: boolean }) {
  const place = several ? (answer.address === '' ? t('this process') : answer.address.replace(/^https?:\/\//, '')) : '';
  return (
    <>
      {data.stages.map((s, i) => {
        const stops = m.deciding !== null && m.verdict === 'drops' && m.deciding.process === index && m.deciding.stage === i;
        const after = m.verdict === 'drops' && m.deciding !== null && (index > m.deciding.process || (index === m.deciding.process && i > m.deciding.stage));
        return <StageRow key={s.kind + s.component} s={s} place={place} stops={stops} reached={!after} x={data} />;
      })}
    </>
  );
}

function StageRow({ s, place, stops, reached, x }: { s: Stage; place: string; stops: boolean; reached: boolean; x: ProcessExplanation }) {
  const origin = s.kind === 'client' ? x.strategies.find((c) => c.component === s.component)?.origin : undefined;
  const where = [s.component, origin?.place, s.pipelines?.join(', '), place].filter(Boolean).join(', ');
  return (
    <li class={classes(css.stage, stops && css.stop, !reached && css.off)}>
      <span class={css.mark}>{!reached ? <span class={css.open} /> : s.verdict === 'keeps' ? <Mark kind="ok" size={15} /> : s.verdict === 'drops' ? <Mark kind="error" size={15} /> : <Mark kind="partial" size={15} label={t('depends')} />}</span>
      <span><span class={css.name}>{stageName(s)}</span><span class={css.where}>{where}{origin && <>. {origin.rule}</>}</span></span>
      <span class={css.detail}>{s.probability !== undefined && <NumberLine s={s} />}{(s.rules?.length ?? 0) > 0 && s.method !== 'sdk' && <Rules s={s} />}</span>
      <span class={css.value}>{reached ? verdictText(s) : t('not reached')}</span>
    </li>
  );
}

/** The numbers of all traces from 0 to 1: kept ones are at the right end. */
function NumberLine({ s }: { s: Stage }) {
  const kept = s.probability!;
  const at = s.needs === undefined ? null : 1 - s.needs;
  const text = at === null ? t('Kept from {from}', { from: fixed(1 - kept, 3) }) : t('This trace is at {at}, traces are kept from {from}', { at: fixed(at, 3), from: fixed(1 - kept, 3) });
  return (
    <span class={css.line} role="img" aria-label={text} title={text}>
      <span class={css.kept} style={{ width: `${kept * 100}%` }} />
      {at !== null && <span class={css.here} style={{ left: `${at * 100}%` }} />}
      <span class={css.labels} aria-hidden="true">{at !== null && <span>{t('trace {at}', { at: fixed(at, 3) })}</span>}<span class={css.from}>{t('kept from {from}', { from: fixed(1 - kept, 3) })}</span></span>
    </span>
  );
}

function Rules({ s }: { s: Stage }) {
  return (
    <ul class={css.rules}>
      {s.rules!.map((r) => (
        <li key={r.name + r.text}>
          <Mark kind={r.verdict === 'keeps' ? 'ok' : r.verdict === 'drops' ? 'error' : 'partial'} size={12} label={r.verdict === 'keeps' ? t('keeps it') : r.verdict === 'drops' ? t('does not keep it') : t('depends')} />
          {s.method === 'conditions' ? <code>{r.text}</code> : <span><b>{r.name}</b> {r.text}{r.needs !== undefined && <span class={css.faint}>{t(', this one needs {needs}', { needs: share(r.needs) })}</span>}</span>}
        </li>
      ))}
    </ul>
  );
}
