import { slowNow } from '../../shell/clock';
import { bytes, count, elapsed, millis } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { currentRate, hiddenFromTenants, ingest, troubled } from '../../shell/ingest';
import { link } from '../../shell/url';
import css from './overview.module.css';

/** Health of ingestion in one line, with a link to the status. */
export function IngestStrip() {
  const { data, samples, error } = ingest.value;
  const perSecond = currentRate(samples);
  if (!data) return error ? <footer class={css.strip}><Mark kind="warn" size={13} label="" /><span>Ingestion: {error.message}</span><span class={css.space} /><a href={link({ page: 'status' })}>Status</a></footer> : null;
  const healthy = !troubled(data, slowNow.value);
  return (
    <footer class={css.strip} aria-label="Ingestion">
      {data.receives && hiddenFromTenants() ? <span>What the process receives for all tenants is not shown to tenants.</span> : data.receives ? (
        <>
          {error ? <span class={css.stripState}><Mark kind="warn" size={13} label="" /><b>Ingestion: {error.message}</b></span> : <span class={css.stripState}><Mark kind={healthy ? 'ok' : 'warn'} size={13} label="" /><b>{healthy ? 'Ingestion healthy' : data.dropped > 0 ? 'Spans were dropped' : 'Spans were refused'}</b></span>}
          <span><b>{perSecond === null ? '–' : count(perSecond)}</b> spans/s</span>
          <span><b>{count(data.dropped)}</b> dropped</span>
          <span><b>{count(data.refused)}</b> refused</span>
        </>
      ) : <span>This process receives no spans; it only answers queries.</span>}
      {data.oldest && <span>oldest data <b>{elapsed(millis(data.oldest), slowNow.value)}</b></span>}
      {data.storedBytes > 0 && <span>stored <b>{bytes(data.storedBytes)}{data.maxBytes > 0 && ` of ${bytes(data.maxBytes)}`}</b></span>}
      <span class={css.space} />
      <a href={link({ page: 'status' })}>Status</a>
    </footer>
  );
}
