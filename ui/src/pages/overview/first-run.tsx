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
import { Time } from '../../shell/time';
import { copy } from '../../shell/toast';
import { link } from '../../shell/url';
import { missingReceiver, onlyLocal, snippetsOf, snippetTabs, targetOf, testSpan, type Snippet, type SnippetTab, type TestSpan, type Target } from './snippets';
import css from './first-run.module.css';

const searchEvery = 1500;
const day = 86_400_000;

/** Waits for the first span: shows how to send one, what the receivers see, and calls `onArrival` with the first trace. */
export function FirstRun({ onArrival }: { onArrival: (trace: TraceSummary) => void }) {
  const [tab, setTab] = useState<SnippetTab>('sdk');
  const [span, setSpan] = useState(newTestSpan);
  useEffect(() => watch(onArrival), []);
  const { data } = ingest.value;
  const target: Target = { ...targetOf(data, location.hostname), tenant: tenant.value ? { header: tenantHeader.value, name: tenant.value } : undefined };
  const snippets = snippetsOf(tab, target, span);
  return (
    <div class={css.page}>
      <div class={css.main}>
        <div class={css.counter}>
          <span class={css.ring} aria-hidden="true" />
          <div>
            <h1 class={css.title}>Waiting for the first span</h1>
            <p class={css.sub}><Listening data={data} /></p>
          </div>
        </div>
        <Tabs label="Ways to send spans" name="send" tabs={snippetTabs} selected={tab} onSelect={setTab} />
        <TabPanel name="send" selected={tab} class={css.snippets}>
          {snippets.map((s) => <Block key={s.intro} snippet={s} target={target} onCopied={() => setSpan(newTestSpan())} />)}
          {snippets.length === 0 && <p>{missingReceiver(tab)}</p>}
          {onlyLocal(data) && <p class={css.hint}>The receivers listen on this machine only. Start the server with TRACING_LISTEN_HOST=0.0.0.0 to accept spans from other machines.</p>}
        </TabPanel>
        <p class={css.more}>No program yet? <button type="button" class={css.linkButton} onClick={() => setTab('demo')}>Send demo data</button> · <a href={link({ page: 'open' })}>Open a trace file</a> <span class={css.faint}>stays in the browser</span></p>
      </div>
      <aside class={css.side} aria-label="Receivers and help">
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
      announce(`First span received: ${found.rootService}, ${found.rootName}`);
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
  const tail = 'This page changes by itself when one arrives.';
  if (!data) return <>{tail}</>;
  if (!data.receives) return <>This process only answers queries; another one receives spans. {tail}</>;
  if (hiddenFromTenants()) return <>Listening{tenant.value && ` for tenant ${tenant.value}`}. {tail}</>; // the counters of all tenants are hidden
  return <>Listening for {elapsed(millis(data.since), now.value)}, <b>{count(data.received)} {data.received === 1 ? 'span' : 'spans'}</b> so far. {tail}</>;
}

function Block({ snippet, target, onCopied }: { snippet: Snippet; target: Target; onCopied: () => void }) {
  const onCopy = (): void => {
    void copy(snippet.text, 'Text').then(onCopied);
  };
  return (
    <>
      <p>{snippet.intro}</p>
      <div class={css.code}>
        <Button icon="copy" class={css.copy} onClick={onCopy}>Copy</Button>
        <pre tabIndex={0}>{marked(snippet.text, target)}</pre>
      </div>
    </>
  );
}

/** Marks what is specific to this installation. */
function marked(text: string, t: Target) {
  return text.split(new RegExp(`(${t.host.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?::\\d+)?)`)).map((part, i) => (i % 2 ? <mark key={i} class={css.own}>{part}</mark> : part));
}

function Receivers({ data }: { data: Ingest }) {
  const refused = data.receivers.filter((r) => r.refusal);
  return (
    <section>
      <div class={css.head}><h2>Receivers</h2><span>spans</span></div>
      {data.receivers.length === 0 && <p class={css.faint}>None in this process.</p>}
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
        <p key={r.name + r.protocol} class={css.refusal}><b>{receiverLabel(r)} refused {refusedText(r).replace(' refused', '')}.</b> Last: <code>{r.refusal!.reason}</code>, <Time at={r.refusal!.at} precision={1} onlyAge />.</p>
      ))}
    </section>
  );
}

function refusedText(r: Ingest['receivers'][number]): string {
  const requests = r.refusedRequests;
  if (requests > 0) return `${count(requests)} ${requests === 1 ? 'request' : 'requests'} refused`;
  return r.refused > 0 ? `${count(r.refused)} refused` : count(r.received);
}

function Steps({ target }: { target: Target }) {
  const steps = [
    target.otlpHTTP > 0 && <>From the host of the program, open <code>http://{target.host}:{target.otlpHTTP}</code>. It must answer, even if only with an error.</>,
    target.otlpHTTP > 0 && target.otlpGRPC > 0 && <>Port {target.otlpHTTP} expects HTTP, port {target.otlpGRPC} expects gRPC.</>,
    <>A sampler set to 0 or <code>always_off</code> sends nothing.</>,
    <>SDKs send in batches: wait 5 s, or end the program.</>,
  ].filter(Boolean);
  return (
    <section class={css.steps}>
      <div class={css.head}><h2>If nothing arrives</h2></div>
      <ol>{steps.map((s, i) => <li key={i}><span class={css.faint} aria-hidden="true">{i + 1}</span><span>{s}</span></li>)}</ol>
    </section>
  );
}

/** The strip above the overview after the first span has arrived. */
export function FirstTrace({ trace }: { trace: TraceSummary }) {
  return (
    <div class={css.arrived}>
      <Mark kind="ok" label="" />
      <span>The first span has arrived: <ServiceMark name={trace.rootService} strong />, {trace.rootName}, {duration(trace.duration)}.</span>
      <a href={link({ page: 'trace', id: trace.traceID })}>Open the trace<Icon name="right" /></a>
    </div>
  );
}
