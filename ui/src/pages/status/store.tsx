import type { StoreState } from '../../api/deployment';
import { MiniBars } from '../../charts/sparkline';
import { slowNow } from '../../shell/clock';
import { bytes, count, duration, elapsed, short } from '../../shell/format';
import { t, Text } from '../../shell/text';
import { Time } from '../../shell/time';
import css from './status.module.css';

const barWidth = 376;

/** What a store holds, what retention deletes next, and times without spans. */
export function Store({ s, title }: { s: StoreState; title: string }) {
  const used = s.maxBytes > 0 ? Math.min(1, s.bytes / s.maxBytes) : 0;
  return (
    <section>
      <div class={css.sideHead}><h2 class={css.heading}>{title}</h2><span>{bytes(s.bytes)}{s.maxBytes > 0 && t(' of {max}', { max: bytes(s.maxBytes) })}</span></div>
      {s.maxBytes > 0 && <span class={css.meter} role="meter" aria-label={t('Used storage')} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(used * 100)}><span style={{ width: `${used * 100}%` }} /></span>}
      {s.problem && <p class={css.problem} role="alert">{s.problem}</p>}
      <dl class={css.facts2}>
        <Pair name={t('Spans')} value={count(s.spans)} />
        {s.spans > 0 && s.bytes > 4 * s.logBytes && <Pair name={t('Bytes per span')} value={bytes(Math.round(s.bytes / s.spans))} />}
        {s.place && <Pair name={t('Folder')} value={<code>{s.place}</code>} />}
        {s.place && <Pair name={t('Segments')} value={s.quarantined > 0 ? t('{n}, and {q} files in quarantine', { n: count(s.segments), q: s.quarantined }) : count(s.segments)} />}
        {s.logBytes > 0 && <Pair name={t('Write-ahead log')} value={bytes(s.logBytes)} />}
        {(s.free ?? 0) > 0 && <Pair name={t('Free disk space')} value={bytes(s.free!)} />}
      </dl>
      <Retention s={s} />
    </section>
  );
}

function Pair({ name, value }: { name: string; value: preact.ComponentChildren }) {
  return <div class={css.pair}><dt>{name}</dt><dd>{value}</dd></div>;
}

function Retention({ s }: { s: StoreState }) {
  const next = s.expiring.find((e) => e.spans > 0);
  const oldest = s.oldest ? Date.parse(s.oldest) : 0;
  return (
    <>
      <div class={css.partHead}><h3 class={css.heading}>{t('Retention')}</h3><span>{s.retention > 0 ? duration(s.retention) : t('not limited by time')}</span></div>
      {s.parts.length > 0 && <MiniBars values={s.parts.map((p) => p.spans)} width={barWidth} height={36} />}
      {oldest > 0 && <p class={css.axis}><Time at={oldest} precision={0} /><span>{t('now')}</span></p>}
      <p class={css.sideText}>
        {oldest === 0 ? t('Nothing is stored.') : s.oldestStart ? <Text of="The oldest span started {start} ago; the first arrived {age} ago." start={elapsed(Date.parse(s.oldestStart), slowNow.value)} age={elapsed(oldest, slowNow.value)} /> : <Text of="The oldest spans arrived {age} ago." age={elapsed(oldest, slowNow.value)} />}{' '}
        {next && t('{spans} spans ({bytes}) will be deleted within {time}.', { spans: short(next.spans), bytes: bytes(next.bytes), time: duration(next.within) })}
        {!next && s.retention > 0 && oldest > 0 && t('Nothing will be deleted within the next day.')}
      </p>
      {s.gaps.length > 0 && (
        <ul class={css.gaps} aria-label={t('Times without spans')}>
          {s.gaps.map((g) => <li key={g.from}><Text of="No span arrived from {from} to {to} ({time})." from={<Time at={Date.parse(g.from)} precision={0} />} to={<Time at={Date.parse(g.to)} precision={0} />} time={elapsed(Date.parse(g.from), Date.parse(g.to))} /></li>)}
        </ul>
      )}
    </>
  );
}
