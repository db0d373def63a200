import { useEffect, useState } from 'preact/hooks';
import { stream, tenant, tenantHeader } from '../../api/client';
import type { Ingest, SearchLine, TraceSummary } from '../../api/types';
import { now } from '../../shell/clock';
import { Button, TabPanel, Tabs } from '../../shell/controls';
import { count, duration, elapsed, millis, nanos } from '../../shell/format';
import { Icon, Mark } from '../../shell/icons';
import { hiddenFromTenants, ingest, orderedReceivers, receiverLabel } from '../../shell/ingest';
import { announce } from '../../shell/live-region';
import { ServiceMark } from '../../shell/service-mark';
import { Failure } from '../../shell/states';
import { t, Text, tn } from '../../shell/text';
import { Time } from '../../shell/time';
import { copy } from '../../shell/toast';
import { link } from '../../shell/url';
import { DemoButton, type DemoLoad } from './demo-button';
import { missingReceiver, onlyLocal, snippetsOf, snippetTabs, targetOf, testSpan, type Snippet, type SnippetTab, type TestSpan, type Target } from './snippets';
import css from './first-run.module.css';

const searchEvery = 1500;
const day = 86_400_000;

/** Waits for the first span: shows how to send one, what the receivers see, and calls `onArrival` with the first trace. */
export function FirstRun({ onArrival, demo }: { onArrival: (trace: TraceSummary) => void; demo: DemoLoad }) {
  const [tab, setTab] = useState<SnippetTab>('sdk');
  const [span, setSpan] = useState(newTestSpan);
  useEffect(() => (demo.loading ? undefined : watch(onArrival)), [demo.loading]);
  const { data } = ingest.value;
  const target: Target = { ...targetOf(data, location.hostname), tenant: tenant.value ? { header: tenantHeader.value, name: tenant.value } : undefined };
  const snippets = snippetsOf(tab, target, span);
  return (
    <div class={css.page}>
      <div>
        <div class={css.counter}>
          <span class={css.ring} aria-hidden="true" />
          <div>
            <h1 class={css.title}>{t('Waiting for the first span')}</h1>
            <p class={css.sub}><Listening data={data} /></p>
          </div>
        </div>
        <Tabs label={t('Ways to send spans')} name="send" tabs={snippetTabs} selected={tab} onSelect={setTab} />
        <TabPanel name="send" selected={tab} class={css.snippets}>
          {snippets.map((s) => <Block key={s.intro} snippet={s} target={target} onCopied={() => setSpan(newTestSpan())} />)}
          {snippets.length === 0 && <p>{missingReceiver(tab)}</p>}
          {onlyLocal(data) && <p class={css.hint}>{t('The receivers listen on this machine only. Start the server with TRACING_LISTEN_HOST=0.0.0.0 to accept spans from other machines.')}</p>}
        </TabPanel>
        <p class={css.more}><Text of="No program yet? {send} · {open}  {stays}" send={<DemoButton demo={demo} otherwise={<button type="button" class={css.linkButton} onClick={() => setTab('demo')}>{t('Send demo data')}</button>} />} open={<a href={link({ page: 'open' })}>{t('Open a trace file')}</a>} stays={<span class={css.faint}>{t('stays in the browser')}</span>} /></p>
        {demo.error && <Failure what={t('Demo data')} error={demo.error} />}
      </div>
      <aside aria-label={t('Receivers and help')}>
        {data && <Receivers data={data} />}
        <Steps target={target} />
      </aside>
    </div>
  );
}

function newTestSpan(): TestSpan {
  return testSpan(Date.now(), crypto.getRandomValues(new Uint8Array(24)));
}

/** Searches until there is a trace. Returns a function that stops it. */
function watch(onArrival: (trace: TraceSummary) => void): () => void {
  const abort = new AbortController();
  let timer = 0;
  const ask = async (): Promise<void> => {
    let found: TraceSummary | undefined;
    try {
      if (!document.hidden) await stream<SearchLine>('search', { start: '0', end: nanos(Date.now() + day), limit: 1 }, (line) => { found ??= line.trace; }, abort.signal);
    } catch {
      // The next attempt follows; the receivers show whether the server answers.
    }
    if (abort.signal.aborted) return;
    if (!found) timer = window.setTimeout(ask, searchEvery);
    else {
      announce(t('First span received: {rootService}, {rootName}', { rootService: found.rootService, rootName: found.rootName }));
      onArrival(found);
    }
  };
  void ask();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}

function Listening({ data }: { data: Ingest | null }) {
  const tail = t('This page updates automatically when one arrives.');
  if (!data) return <>{tail}</>;
  if (!data.receives) return <>{t('This process only answers queries; another one receives spans. {tail}', { tail })}</>;
  if (hiddenFromTenants()) return <><Text of="Listening{tenant}. {tail}" tenant={tenant.value && t(' for tenant {tenant}', { tenant: tenant.value })} tail={tail} /></>; // the counters of all tenants are hidden
  return <><Text of="Listening for {since}, {received} so far. {tail}" since={elapsed(millis(data.since), now.value)} received={<b>{tn(data.received, '{n} span', '{n} spans', { n: count(data.received) })}</b>} tail={tail} /></>;
}

function Block({ snippet, target, onCopied }: { snippet: Snippet; target: Target; onCopied: () => void }) {
  const onCopy = (): void => {
    void copy(snippet.text, 'Text').then(onCopied);
  };
  return (
    <>
      <p>{snippet.intro}</p>
      <div class={css.code}>
        <Button icon="copy" class={css.copy} onClick={onCopy}>{t('Copy')}</Button>
        <pre tabIndex={0}>{marked(snippet.text, target)}</pre>
      </div>
    </>
  );
}

/** Marks what is specific to this installation. */
function marked(text: string, target: Target) {
  return text.split(new RegExp(`(${target.host.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?::\\d+)?)`)).map((part, i) => (i % 2 ? <mark key={i} class={css.own}>{part}</mark> : part));
}

function Receivers({ data }: { data: Ingest }) {
  const refused = data.receivers.filter((r) => r.refusal);
  return (
    <section>
      <div class={css.head}><h2>{t('Receivers')}</h2><span>{t('spans')}</span></div>
      {data.receivers.length === 0 && <p class={css.faint}>{t('None in this process.')}</p>}
      <ul>
        {orderedReceivers(data).map((r) => (
          <li key={r.name + r.protocol} class={css.receiver}>
            {r.refusal ? <Mark kind="warn" size={13} label="" /> : r.received > 0 ? <Mark kind="ok" size={13} label="" /> : <span class={css.ringSmall} aria-hidden="true" />}
            <span><span class={css.name}>{receiverLabel(r)}</span><code class={css.address}>{r.endpoint}</code></span>
            <span class={r.refusal ? css.refused : css.number}>{refusedText(r)}</span>
          </li>
        ))}
      </ul>
      {refused.map((r) => (
        <p key={r.name + r.protocol} class={css.refusal}><Text of="{r} Last: {reason}, {at}." r={<b>{t('{receiver}: {refused}.', { receiver: receiverLabel(r), refused: refusedText(r) })}</b>} reason={<code>{r.refusal!.reason}</code>} at={<Time at={r.refusal!.at} precision={1} onlyAge />} /></p>
      ))}
    </section>
  );
}

function refusedText(r: Ingest['receivers'][number]): string {
  const requests = r.refusedRequests;
  if (requests > 0) return tn(requests, '{requests} request refused', '{requests} requests refused', { requests: count(requests) });
  return r.refused > 0 ? tn(r.refused, '{n} span refused', '{n} spans refused', { n: count(r.refused) }) : count(r.received);
}

function Steps({ target }: { target: Target }) {
  const steps = [
    target.otlpHTTP > 0 && <><Text of="On the program's host, open {host}. It must respond, even if only with an error." host={<code>http://{target.host}:{target.otlpHTTP}</code>} /></>,
    target.otlpHTTP > 0 && target.otlpGRPC > 0 && <>{t('Port {otlpHTTP} expects HTTP, port {otlpGRPC} expects gRPC.', { otlpHTTP: target.otlpHTTP, otlpGRPC: target.otlpGRPC })}</>,
    <><Text of="A sampler set to 0 or {always} sends nothing." always={<code>always_off</code>} /></>,
    <>{t('SDKs send in batches: wait 5 s, or end the program.')}</>,
  ].filter(Boolean);
  return (
    <section class={css.steps}>
      <div class={css.head}><h2>{t('If nothing arrives')}</h2></div>
      <ol>{steps.map((s, i) => <li key={i}><span class={css.faint} aria-hidden="true">{i + 1}</span><span>{s}</span></li>)}</ol>
    </section>
  );
}

/** The strip above the overview after the first span has arrived. */
export function FirstTrace({ trace }: { trace: TraceSummary }) {
  return (
    <div class={css.arrived}>
      <Mark kind="ok" label="" />
      <span><Text of="The first span has arrived: {rootService}, {rootName}, {duration}." rootService={<ServiceMark name={trace.rootService} strong />} rootName={trace.rootName} duration={duration(trace.duration)} /></span>
      <a href={link({ page: 'trace', id: trace.traceID })}>{t('Open the trace')}<Icon name="right" /></a>
    </div>
  );
}
