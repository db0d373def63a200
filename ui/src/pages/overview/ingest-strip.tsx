import { slowNow } from '../../shell/clock';
import { bytes, count, elapsed, millis } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { currentRate, hiddenFromTenants, ingest, troubled } from '../../shell/ingest';
import { t, Text } from '../../shell/text';
import { link } from '../../shell/url';
import css from './overview.module.css';

/** Health of ingestion in one line, with a link to the status. */
export function IngestStrip() {
  const { data, samples, error } = ingest.value;
  const perSecond = currentRate(samples);
  if (!data) return error ? <footer class={css.strip}><Mark kind="warn" size={13} label="" /><span>{t('Ingestion: {message}', { message: error.message })}</span><span class={css.space} /><a href={link({ page: 'status' })}>{t('Status')}</a></footer> : null;
  const healthy = !troubled(data, slowNow.value);
  return (
    <footer class={css.strip} aria-label={t('Ingestion')}>
      {data.receives && hiddenFromTenants() ? <span>{t('What the process receives from all tenants is not shown to tenants.')}</span> : data.receives ? (
        <>
          {error ? <span class={css.stripState}><Mark kind="warn" size={13} label="" /><b>{t('Ingestion: {message}', { message: error.message })}</b></span> : <span class={css.stripState}><Mark kind={healthy ? 'ok' : 'warn'} size={13} label="" /><b>{healthy ? t('Ingestion healthy') : data.dropped > 0 ? t('Spans were dropped') : t('Spans were refused')}</b></span>}
          {/* Known after two answers; the place is kept. */}
          <span class={perSecond === null ? css.unknown : undefined}><Text of="{perSecond} spans/s" perSecond={<b>{count(perSecond ?? 0)}</b>} /></span>
          <span><Text of="{dropped} dropped" dropped={<b>{count(data.dropped)}</b>} /></span>
          <span><Text of="{refused} refused" refused={<b>{count(data.refused)}</b>} /></span>
        </>
      ) : <span>{t('This process receives no spans; it only answers queries.')}</span>}
      {data.oldestStart && <span><Text of="oldest span {oldest} ago" oldest={<b>{elapsed(millis(data.oldestStart), slowNow.value)}</b>} /></span>}
      {data.storedBytes > 0 && <span><Text of="stored {storedBytes}" storedBytes={<b>{bytes(data.storedBytes)}{data.maxBytes > 0 && t(' of {maxBytes}', { maxBytes: bytes(data.maxBytes) })}</b>} /></span>}
      <span class={css.space} />
      <a href={link({ page: 'status' })}>{t('Status')}</a>
    </footer>
  );
}
