import type { Details, Processes } from '../../api/deployment';
import type { Capabilities, Config } from '../../api/types';
import { config } from '../../shell/config';
import { bytes, count, duration } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { t } from '../../shell/text';
import { Store } from './store';
import css from './status.module.css';

/** Storage, retention, limits in use, and what the web UI can do. */
export function Side({ data }: { data: Processes<Details> }) {
  const c = config.value;
  const answered = data.processes.filter((p) => p.data);
  return (
    <aside class={css.side} aria-label={t('Storage and limits')} tabIndex={0}>
      {answered.flatMap((p) => p.data!.stores.map((s) => <Store key={p.address + s.component} s={s} title={answered.length > 1 ? t('Store {component} of {process}', { component: s.component, process: p.data!.process }) : t('Store {component}', { component: s.component })} />))}
      {!data.hidden && answered.map((p) => <MemoryLimits key={p.address} d={p.data!} titled={answered.length > 1} />)}
      {c && <CapabilityList capabilities={c.capabilities} />}
      {c && <Limits limits={c.limits} />}
    </aside>
  );
}

const limitNames: Record<string, string> = {
  'service.limits.inflight': t('Requests in progress'), 'service.limits.query_memory': t('Queries'), 'service.limits.held': t('Held spans'), 'soft memory limit': t('Whole process'),
};

function MemoryLimits({ d, titled }: { d: Details; titled: boolean }) {
  return (
    <section>
      <div class={css.sideHead}><h2 class={css.heading}>{titled ? t('Memory of {process}', { process: d.process }) : t('Memory')}</h2></div>
      <dl class={css.facts2}>
        {d.limits.map((l) => (
          <div key={l.key} class={css.pair} title={l.key}><dt>{limitNames[l.key] ?? l.key}</dt><dd>{bytes(l.used)} <span class={css.faint}>{t('of {max}', { max: bytes(l.max) })}{l.peak > 0 && t(', at most {peak} so far', { peak: bytes(l.peak) })}</span></dd></div>
        ))}
      </dl>
    </section>
  );
}

const capabilityNames: [keyof Capabilities, string][] = [
  ['aggregates', t('Span counts')], ['attributes', t('Attribute names')], ['dependencies', t('Dependencies')],
  ['metrics', t('Service performance')], ['archive', t('Archive')], ['tail', t('Live tail')], ['tenancy', t('Tenants')], ['demo', t('Demo data')],
];

function CapabilityList({ capabilities }: { capabilities: Capabilities }) {
  return (
    <section>
      <div class={css.sideHead}><h2 class={css.heading}>{t('Capabilities')}</h2></div>
      <dl class={css.facts2}>
        {capabilityNames.map(([key, label]) => (
          <div key={key} class={css.pair}><dt>{label}</dt><dd>{capabilities[key] ? <span class={css.yes}><Mark kind="ok" size={13} label="" />{t('yes')}</span> : <span class={css.faint}>{t('no')}</span>}</dd></div>
        ))}
      </dl>
    </section>
  );
}

function Limits({ limits }: { limits: Config['limits'] }) {
  const rows: [string, string][] = [
    [t('Time of a query'), duration(limits.queryTimeout)], [t('Traces of a search'), count(limits.traces)], [t('Spans of a trace'), count(limits.traceSize)],
    [t('Spans read by a search'), count(limits.scannedSpans)], [t('Spans counted exactly'), count(limits.aggregatedSpans)],
  ];
  return (
    <section>
      <div class={css.sideHead}><h2 class={css.heading}>{t('Limits of queries')}</h2></div>
      <dl class={css.facts2}>{rows.map(([k, v]) => <div key={k} class={css.pair}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
    </section>
  );
}
