import type { Ingest } from '../../api/types';
import { Sparkline } from '../../charts/sparkline';
import { maxOf } from '../../charts/scale';
import { now } from '../../shell/clock';
import { config, configError } from '../../shell/config';
import { classes } from '../../shell/controls';
import { count, elapsed, millis, none, short } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { currentRate, hiddenFromTenants, ingest, retryIngest, orderedReceivers, rateSeries, receiverLabel, type Sample } from '../../shell/ingest';
import { Failure, Skeleton } from '../../shell/states';
import { Time } from '../../shell/time';
import { useTitle } from '../../shell/title';
import { Side } from './side';
import { statusSentence } from './sentence';
import css from './status.module.css';

/** The page `/status`: what this process receives and stores, and what it can do. */
export default function StatusPage() {
  useTitle('Status');
  const { data, samples, error } = ingest.value;
  const problem = error ?? configError.value;
  if (!data) {
    return (
      <div class={css.main}>
        <h1 class={css.sentence}>Status</h1>
        {problem ? <Failure what="Status" error={problem} retry={retryIngest} /> : <Skeleton rows={6} />}
      </div>
    );
  }
  const counted = data.receives && !hiddenFromTenants();
  const state = counted || !data.receives ? statusSentence(data, currentRate(samples)) : { text: 'What this process receives for all tenants is not shown to tenants', mark: null };
  return (
    <div class={css.columns}>
      <div class={css.main}>
        <h1 class={css.sentence}>{state.mark && <span class={css.mark}><Mark kind={state.mark} size={16} label="" /></span>}{state.text}</h1>
        <Facts data={data} counted={counted} />
        {error && <Failure what="Status, which is of an earlier answer" error={error} retry={retryIngest} />}
        {data.receives && <Receivers data={data} samples={samples} counted={counted} />}
        {(counted || !data.receives) && <p class={css.hint}>Counters are of this process, since it started. The administration port serves those of exporters, queues and queries as metrics, at <code>/metrics</code>.</p>}
      </div>
      <Side data={data} />
    </div>
  );
}

function Facts({ data, counted }: { data: Ingest; counted: boolean }) {
  const version = config.value?.version;
  return (
    <p class={css.facts}>
      {version && <span>version <b>{version.gitVersion || version.gitCommit.slice(0, 12) || 'unknown'}</b></span>}
      <span>up <b>{elapsed(millis(data.since), now.value)}</b></span>
      {counted && <span>received <b>{count(data.received)}</b> spans</span>}
      {counted && <span>refused <b>{count(data.refused)}</b> spans, <b>{count(data.refusedRequests)}</b> requests</span>}
      {counted && <span>dropped <b>{count(data.dropped)}</b> spans</span>}
    </p>
  );
}

function Receivers({ data, samples, counted }: { data: Ingest; samples: Sample[]; counted: boolean }) {
  const refusals = data.receivers.filter((r) => r.refusal);
  return (
    <section class={css.section}>
      <h2 class={css.heading}>Receivers</h2>
      <div class={css.scroll}>
        <table class={css.table}>
          <thead>
            <tr>
              <th scope="col">Receiver</th><th scope="col" class={css.wide}>Address</th><th scope="col" class={css.number}>Spans/s</th>
              <th scope="col" class={classes(css.spark, css.wide)}><span class="visually-hidden">Spans per second since this page was opened</span></th>
              <th scope="col" class={css.number}>Received</th><th scope="col" class={css.number}>Refused</th><th scope="col" class={classes(css.number, css.wide)}>Refused requests</th>
            </tr>
          </thead>
          <tbody>{orderedReceivers(data).map((r) => <Row key={r.name + r.protocol} r={r} samples={samples} counted={counted} />)}</tbody>
        </table>
      </div>
      {refusals.map((r) => (
        <p key={r.name + r.protocol} class={css.refusal}>{receiverLabel(r)}, last refusal <Time at={r.refusal!.at} precision={1} withAge />: <code>{r.refusal!.reason}</code></p>
      ))}
    </section>
  );
}

function Row({ r, samples, counted }: { r: Ingest['receivers'][number]; samples: Sample[]; counted: boolean }) {
  const number = (n: number): string => (counted ? short(n) : none);
  const key = `${r.name} ${r.protocol}`;
  const perSecond = currentRate(samples, key);
  const series = rateSeries(samples, key);
  const bad = r.refused > 0 || r.refusedRequests > 0;
  return (
    <tr>
      <th scope="row"><span class={css.receiver}><span class={css.state}>{bad ? <Mark kind="warn" size={13} /> : r.received > 0 ? <Mark kind="ok" size={13} /> : <span aria-hidden="true">{none}</span>}</span>{receiverLabel(r)}</span></th>
      <td class={css.wide} title={r.endpoint}><code>{r.endpoint}</code></td>
      <td class={css.number}>{perSecond === null || !counted ? none : perSecond === 0 ? <span class={css.faint}>idle</span> : count(perSecond)}</td>
      <td class={classes(css.spark, css.wide)}>{series.length > 1 && r.received > 0 && <Sparkline values={series} width={104} color="var(--series-rate)" max={maxOf([series]) * 1.5 || 1} />}</td>
      <td class={css.number} title={count(r.received)}>{number(r.received)}</td>
      <td class={classes(css.number, r.refused > 0 ? css.bad : css.faint)} title={count(r.refused)}>{number(r.refused)}</td>
      <td class={classes(css.number, css.wide, r.refusedRequests > 0 ? css.bad : css.faint)} title={count(r.refusedRequests)}>{number(r.refusedRequests)}</td>
    </tr>
  );
}
