import type { Details, ReceiverState } from '../../api/deployment';
import { maxOf } from '../../charts/scale';
import { Sparkline } from '../../charts/sparkline';
import { classes } from '../../shell/controls';
import { count, none, short } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { receiverLabel } from '../../shell/ingest';
import { t, Text } from '../../shell/text';
import { Time } from '../../shell/time';
import { keyOf, rates, type Samples } from './rates';
import css from './status.module.css';

const label = (r: ReceiverState): string => receiverLabel({ name: r.component, protocol: r.transport });

/** What each receiver received and refused, with the last refusals. */
export function Receivers({ d, address, samples, hidden }: { d: Details; address: string; samples: Samples; hidden: boolean }) {
  const all = d.intake.receivers ?? [];
  if (all.length === 0) return null;
  return (
    <section class={css.section}>
      <h3 class={css.heading}>{t('Receivers')}</h3>
      <div class={css.scroll}>
        <table class={css.table}>
          <thead>
            <tr>
              <th scope="col">{t('Receiver')}</th><th scope="col" class={css.wide}>{t('Address')}</th><th scope="col" class={css.number}>{t('Spans/s')}</th>
              <th scope="col" class={classes(css.spark, css.wide)}><span class="visually-hidden">{t('Spans per second since this page was opened')}</span></th>
              <th scope="col" class={css.number}>{t('Received')}</th><th scope="col" class={css.number}>{t('Refused')}</th><th scope="col" class={classes(css.number, css.wide)}>{t('Refused requests')}</th>
            </tr>
          </thead>
          <tbody>{all.map((r) => <Row key={r.component + r.transport} r={r} series={rates(samples[keyOf(address, r.component, r.transport)])} hidden={hidden} />)}</tbody>
        </table>
      </div>
      {all.filter((r) => r.refusal).map((r) => (
        <p key={r.component + r.transport} class={css.refusal}>
          <Text of="{receiver}, last refusal {time}: {reason}" receiver={label(r)} time={<Time at={Date.parse(r.refusal!.at)} precision={1} withAge />} reason={<code>{r.refusal!.reason}</code>} />
        </p>
      ))}
    </section>
  );
}

function Row({ r, series, hidden }: { r: ReceiverState; series: number[]; hidden: boolean }) {
  const number = (n: number): string => (hidden ? none : short(n));
  const perSecond = series.at(-1);
  const bad = r.refused > 0 || r.refusedRequests > 0;
  const addresses = (r.addresses ?? []).join(', ');
  return (
    <tr>
      <th scope="row"><span class={css.receiver}><span class={css.state}>{bad ? <Mark kind="warn" size={13} /> : r.received > 0 ? <Mark kind="ok" size={13} /> : <span aria-hidden="true">{none}</span>}</span>{label(r)}</span></th>
      <td class={css.wide} title={addresses}><code>{addresses}</code></td>
      <td class={css.number}>{perSecond === undefined || hidden ? none : perSecond === 0 ? <span class={css.faint}>{t('idle')}</span> : count(perSecond)}</td>
      <td class={classes(css.spark, css.wide)}>{series.length > 1 && r.received > 0 && <Sparkline values={series} width={104} color="var(--series-rate)" max={maxOf([series]) * 1.5 || 1} />}</td>
      <td class={css.number} title={count(r.received)}>{number(r.received)}</td>
      <td class={classes(css.number, r.refused > 0 ? css.bad : css.faint)} title={count(r.refused)}>{number(r.refused)}</td>
      <td class={classes(css.number, css.wide, r.refusedRequests > 0 ? css.bad : css.faint)} title={count(r.refusedRequests)}>{number(r.refusedRequests)}</td>
    </tr>
  );
}
