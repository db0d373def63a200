import type { Capabilities, Config, Ingest } from '../../api/types';
import { slowNow } from '../../shell/clock';
import { config } from '../../shell/config';
import { bytes, count, duration, elapsed, millis, none } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { Time } from '../../shell/time';
import css from './status.module.css';

/** Storage, retention, capabilities and limits. */
export function Side({ data }: { data: Ingest }) {
  const c = config.value;
  return (
    <aside class={css.side} aria-label="Storage and limits">
      <Storage data={data} />
      {c && <CapabilityList capabilities={c.capabilities} />}
      {c && <Limits limits={c.limits} />}
    </aside>
  );
}

function Storage({ data }: { data: Ingest }) {
  const known = data.storedBytes > 0 || data.maxBytes > 0;
  const used = data.maxBytes > 0 ? Math.min(1, data.storedBytes / data.maxBytes) : 0;
  return (
    <section>
      <div class={css.sideHead}><h2 class={css.heading}>Storage</h2>{known && <span>{bytes(data.storedBytes)}{data.maxBytes > 0 && ` of ${bytes(data.maxBytes)}`}</span>}</div>
      {data.maxBytes > 0 && <span class={css.meter} role="meter" aria-label="Used storage" aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(used * 100)}><span style={{ width: `${used * 100}%` }} /></span>}
      <dl class={css.facts2}>
        <dt>Retention</dt><dd>{data.retention > 0 ? duration(data.retention) : 'not limited by time'}</dd>
        <dt>Oldest data</dt>
        <dd>{data.oldest ? <>{elapsed(millis(data.oldest), slowNow.value)} <span class={css.faint}>since <Time at={data.oldest} precision={0} /></span></> : none}</dd>
      </dl>
    </section>
  );
}

const capabilityNames: [keyof Capabilities, string][] = [
  ['aggregates', 'Counting of spans'], ['attributes', 'Attribute names'], ['dependencies', 'Dependencies'],
  ['metrics', 'Service performance'], ['archive', 'Archive'], ['tail', 'Live tail'], ['tenancy', 'Tenants'],
];

function CapabilityList({ capabilities }: { capabilities: Capabilities }) {
  return (
    <section>
      <div class={css.sideHead}><h2 class={css.heading}>Capabilities</h2></div>
      <dl class={css.facts2}>
        {capabilityNames.map(([key, label]) => (
          <div key={key} class={css.pair}><dt>{label}</dt><dd>{capabilities[key] ? <span class={css.yes}><Mark kind="ok" size={13} label="" />yes</span> : <span class={css.faint}>no</span>}</dd></div>
        ))}
      </dl>
    </section>
  );
}

function Limits({ limits }: { limits: Config['limits'] }) {
  const rows: [string, string][] = [
    ['Time of a query', duration(limits.queryTimeout)], ['Traces of a search', count(limits.traces)], ['Spans of a trace', count(limits.traceSize)],
    ['Spans read by a search', count(limits.scannedSpans)], ['Spans counted exactly', count(limits.aggregatedSpans)],
  ];
  return (
    <section>
      <div class={css.sideHead}><h2 class={css.heading}>Limits</h2></div>
      <dl class={css.facts2}>{rows.map(([k, v]) => <div key={k} class={css.pair}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
    </section>
  );
}
