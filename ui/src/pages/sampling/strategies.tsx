import type { OperationHistory, Provider, Sampler, ServiceStrategy } from '../../api/deployment';
import { Sparkline } from '../../charts/sparkline';
import { slowNow } from '../../shell/clock';
import { classes } from '../../shell/controls';
import { duration, none, number, rate, share } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { ServiceMark } from '../../shell/service-mark';
import { Elapsed } from '../status/elapsed';
import { t, tn, Text } from '../../shell/text';
import { link, view } from '../../shell/url';
import css from './strategies.module.css';

const maxRows = 200;

/** A sampler in a few words: `12.5 %`, `7 traces/s`. */
export function samplerText(s: Sampler): string {
  if (s.type === '') return t('set by the collector');
  return s.type === 'ratelimiting' ? t('{n} traces/s', { n: number(s.param) }) : share(s.param);
}

const sources: Record<string, string> = { 'built-in': t('built-in default'), file: t('file'), url: t('URL'), adaptive: t('adaptive'), remote: t('collector') };

/** Where a strategy comes from, in a few words. */
export function originText(s: ServiceStrategy): string {
  return [sources[s.origin.source] ?? s.origin.source, s.origin.place].filter(Boolean).join(' ');
}

/** The strategies of one provider. */
export function Strategies({ p, process }: { p: Provider; process: string }) {
  const found = p.services;
  const problem = p.default.origin.problem;
  return (
    <section class={css.section}>
      <div class={css.head}><h2 class={css.heading}>{process ? t('Strategies of {process}', { process }) : t('Strategies')}</h2><span class={css.faint}>{originText(p.default)}</span></div>
      {problem && <p class={css.problem}><Mark kind="warn" size={13} label="" /> <code>{problem}</code></p>}
      <table class={css.table}>
        <thead><tr><th scope="col">{t('Service')}</th><th scope="col" class={css.number}>{t('Keeps')}</th><th scope="col" class={css.wide}>{t('Source')}</th><th scope="col">{t('Last request')}</th></tr></thead>
        <tbody>
          {found.slice(0, maxRows).map((s) => <StrategyRow key={s.service} s={s} />)}
          <tr><th scope="row" class={css.faint}>{t('all others')}</th><td class={css.number}>{samplerText(p.default.sampler)}</td><td class={css.wide}>{p.default.origin.rule}</td><td>{none}</td></tr>
        </tbody>
      </table>
      {found.length + p.omitted > maxRows && <p class={css.faint}>{tn(found.length + p.omitted - Math.min(found.length, maxRows), '{n} more service is not shown.', '{n} more services are not shown.')}</p>}
      {p.adaptive && <Probabilities a={p.adaptive} />}
    </section>
  );
}

function StrategyRow({ s }: { s: ServiceStrategy }) {
  const last = s.last;
  return (
    <tr class={classes(view.value.ask.service === s.service && css.chosen)}>
      <th scope="row"><a href={link({ page: 'sampling' }, { ask: { service: s.service, operation: '', trace: '' } })}><ServiceMark name={s.service || t('(no name)')} /></a></th>
      <td class={css.number} title={tn(s.operations, '{n} operation has its own', '{n} operations have their own')}>{samplerText(s.sampler)}{s.operations > 0 && <span class={css.faint}> +{s.operations}</span>}</td>
      <td class={css.wide} title={s.origin.rule}>{originText(s)}</td>
      <td>{last ? <Asked s={s} /> : <span class={css.faint}>{t('never here')}</span>}</td>
    </tr>
  );
}

function Asked({ s }: { s: ServiceStrategy }) {
  const last = s.last!;
  const title = t('{address} over {transport} ({client}): {answer}', { address: last.address, transport: last.transport ?? '', client: last.client ?? '', answer: last.told });
  return (
    <span title={title}>
      <Elapsed since={last.at} now={slowNow.value} ago /> <span class={css.faint}><Text of="from {address}" address={last.address} /></span>
      {last.failed ? <span class={css.bad}> {t('got an error')}</span> : !last.current && <span class={css.bad}> {t('got “{answer}”, which is outdated', { answer: last.told })}</span>}
    </span>
  );
}

function Probabilities({ a }: { a: NonNullable<Provider['adaptive']> }) {
  const found = a.operations;
  const span = a.operations[0]?.points ?? [];
  return (
    <section class={css.section}>
      <div class={css.head}>
        <h2 class={css.heading}>{t('Current probabilities')}</h2>
        <span class={css.faint}>{t('target {target} traces/s for each operation', { target: number(a.targetSamplesPerSecond) })}{a.calculated && <>, <Text of="calculated {time} by {by}" time={<Elapsed since={a.calculated} now={slowNow.value} ago />} by={a.by ?? ''} /></>}</span>
      </div>
      {a.operations.length === 0 ? <p class={css.note}>{t('No root span with sampling tags has been counted yet. The first calculation runs {time} after startup.', { time: duration(2 * a.interval) })}</p> : (
        <>
              <table class={css.table}>
            <thead><tr><th scope="col">{t('Root operation')}</th><th scope="col" class={css.number}>{t('Traces/s')}</th><th scope="col" class={css.number}>{t('Probability')}</th><th scope="col" class={css.wide}>{span.length > 1 ? t('last {time}', { time: duration((Date.parse(span.at(-1)!.at) - Date.parse(span[0].at)) * 1e6) }) : t('over time')}</th></tr></thead>
            <tbody>{found.slice(0, maxRows).map((o) => <OperationRow key={o.service + '\n' + o.operation} o={o} />)}</tbody>
          </table>
          {found.length + a.omitted > maxRows && <p class={css.faint}>{tn(found.length + a.omitted - maxRows, '{n} more operation is not shown.', '{n} more operations are not shown.')}</p>}
        </>
      )}
    </section>
  );
}

function OperationRow({ o }: { o: OperationHistory }) {
  const values = o.points.map((p) => p.probability);
  const { ask } = view.value;
  return (
    <tr class={classes(ask.service === o.service && ask.operation === o.operation && css.chosen)} title={o.reason}>
      <th scope="row"><a class={css.operation} href={link({ page: 'sampling' }, { ask: { service: o.service, operation: o.operation, trace: '' } })}><ServiceMark name={o.service} strong /> <span class={css.name}>{o.operation}</span></a></th>
      <td class={css.number}>{rate(o.rate)}</td>
      <td class={css.number}>{share(o.probability)}</td>
      <td class={css.wide}>{values.length > 1 ? <Sparkline values={values} width={84} height={18} color="var(--series-rate)" max={Math.max(...values) * 1.2} /> : none}</td>
    </tr>
  );
}
