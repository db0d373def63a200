import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Errors } from '../../api/errors';
import type { Incidents } from '../../api/incidents';
import type { Changes, Names, Services, TraceSummary } from '../../api/types';
import { errorShare } from '../../incidents/words';
import { iso, millis, time } from '../../shell/format';
import { capable } from '../../shell/config';
import { slowNow } from '../../shell/clock';
import { ingest } from '../../shell/ingest';
import { zone } from '../../shell/preferences';
import { isRelative, resolveRange } from '../../shell/range';
import { AnswerState, Empty, Messages, Progress, Skeleton } from '../../shell/states';
import { t } from '../../shell/text';
import { rangeName } from '../../shell/time-input';
import { WiderRanges } from '../../shell/time-picker';
import { useTitle } from '../../shell/title';
import { withoutTime } from '../../shell/top-bar';
import { link, view } from '../../shell/url';
import { rangeParams, useRequest } from '../../shell/use-request';
import { useDemoLoad } from './demo-button';
import { FirstRun, FirstTrace } from './first-run';
import { ChartRow } from './chart-row';
import { ErrorPanel } from './error-panel';
import { inOrderOf, isCompared, judge, silentSince } from './health';
import { IngestStrip } from './ingest-strip';
import { Lead } from './lead';
import { overviewSentence } from './sentence';
import { ServiceTable } from './service-table';
import css from './overview.module.css';

const servicesEvery = 10_000;
const errorsEvery = 30_000;
const incidentsEvery = 30_000;
const changesEvery = 60_000;

/** The page `/`: is anything broken right now? */
export default function OverviewPage() {
  const [first, setFirst] = useState<TraceSummary | null>(null);
  const { range } = view.value;
  const demo = useDemoLoad();
  // The services in a part of the demo data would look wrong.
  const services = useRequest<Services>(demo.loading ? null : 'services', (now) => rangeParams(range, now), { every: isRelative(range) ? servicesEvery : 0 });
  const nothing = services.data?.services.length === 0;
  const names = useRequest<Names>(nothing ? 'values' : null, { key: 'service', prefix: '', limit: 1 });
  const ingested = ingest.value.data;
  const neverStored = !first && nothing && names.data?.names.length === 0 && !ingested?.oldest;
  useEffect(() => {
    withoutTime.value = neverStored;
    return () => { withoutTime.value = false; };
  }, [neverStored]);
  useTitle(neverStored ? t('Waiting for the first span') : t('Overview'));
  if (neverStored || demo.loading) return <FirstRun demo={demo} onArrival={(trace) => { setFirst(trace); services.retry(); names.retry(); }} />;
  return <Overview services={services} first={first} />;
}

function Overview({ services, first }: { services: ReturnType<typeof useRequest<Services>>; first: TraceSummary | null }) {
  const { range } = view.value;
  const live = isRelative(range);
  const errors = useRequest<Errors>('errors', (now) => ({ ...rangeParams(range, now), before: 1, sort: 'growth' }), { every: live ? errorsEvery : 0 });
  const changes = useRequest<Changes>('changes', (now) => rangeParams(range, now), { every: live ? changesEvery : 0 });
  const name = rangeName(range, zone.value, slowNow.value);
  const { data } = services;
  const some = !!data?.services.some((s) => s.incident);
  const incidents = useRequest<Incidents>(some ? 'incidents' : null, (now) => rangeParams(range, now), { every: live ? incidentsEvery : 0 });
  if (!data) {
    const { from, to } = resolveRange(range, Date.now());
    return <Waiting services={services}><ErrorPanel errors={errors} changes={changes} start={from} end={to} rangeLabel={name} /></Waiting>;
  }
  const comparable = isCompared(data);
  const known = some ? incidents.data : undefined;
  const judged = inOrderOf(judge(data), known);
  const at = (ms: number): string => time(ms, zone.value, millis(data.end), 0);
  const stopped = silentSince(data.total, data);
  const sentence = overviewSentence(judged, {
    comparable, errorShare: errorShare(data.total.summary), at, silentSince: stopped,
  });
  const none = data.total.summary.calls === 0;
  return (
    <>
      <Progress active={services.loading} label={t('Loading services')} />
      {first && <FirstTrace trace={first} />}
      <Lead sentence={sentence} services={judged.length} usual={data.total.usual} quiet={none || stopped !== null} incidents={known} expecting={some && !incidents.data && !incidents.error} at={at} to={live ? 'now' : iso(millis(data.end))} />
      {some && incidents.error && <AnswerState what={t('Incidents')} answer={incidents} class={css.message} />}
      <div class={css.columns}>
        <div class={css.main}>
          <AnswerState what={t('Services')} answer={services} class={css.message} />
          {services.messages.length > 0 && <div class={css.message}><Messages messages={services.messages} /></div>}
          {none ? <NoRequests /> : <ChartRow all data={data} changes={changes.data?.changes ?? []} judged={judged} />}
          {judged.length > 0 && <ServiceTable services={judged} data={data} changes={changes.data?.changes ?? []} order={comparable ? t('most unusual') : t('highest share of errors')} />}
        </div>
        <ErrorPanel errors={errors} changes={changes} start={millis(data.start)} end={millis(data.end)} rangeLabel={name} />
      </div>
      <IngestStrip />
    </>
  );
}

/** Before the first answer, or without one: the other regions stay. */
function Waiting({ services, children }: { services: ReturnType<typeof useRequest<Services>>; children: ComponentChildren }) {
  if (!services.error) return <div class={css.waiting}><h1 class="visually-hidden">{t('Overview')}</h1><Progress active label={t('Loading services')} /><Skeleton rows={12} /></div>;
  return (
    <>
      <div class={css.lead}><h1>{t('Overview')}</h1></div>
      <div class={css.columns}>
        <div class={css.main}>
          <div class={css.message}>
            {capable('aggregates')
              ? <AnswerState what={t('Services')} answer={services} />
              : <Empty title={t('This store does not count requests, so there is no overview.')}><a href={link({ page: 'explore' })}>{t('Explore the newest traces')}</a><a href={link({ page: 'status' })}>{t('Status')}</a></Empty>}
          </div>
        </div>
        {children}
      </div>
      <IngestStrip />
    </>
  );
}

/** Ways out of a range without requests. */
function NoRequests() {
  return (
    <div class={css.message}>
      <Empty title={t('No service received requests in this time range.')}>
        <WiderRanges of={{ page: 'overview' }} />
        <a href={link({ page: 'status' })}>{t('Check the receivers')}</a>
      </Empty>
    </div>
  );
}
