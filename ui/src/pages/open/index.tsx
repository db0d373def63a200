import { useEffect, useMemo, useState } from 'preact/hooks';
import { count } from '../../shell/format';
import { announce } from '../../shell/live-region';
import type { Places } from '../../compare/head';
import { lazy } from '../../shell/lazy';
import { Failure, Partial, Progress } from '../../shell/states';
import { t, Text, tn } from '../../shell/text';
import { useTitle } from '../../shell/title';
import { view } from '../../shell/url';
import { sentenceText } from '../../trace/model/sentence';
import type { TraceModel, TraceSource } from '../../trace/model/types';
import { DropZone } from './drop-zone';
import { content, prepare, reading, sourceOf } from './files';
import { Problems } from './problems';
import { TraceList } from './trace-list';
import css from './open.module.css';

const CompareView = lazy(() => import('../../compare/compare-view'));
const TraceView = lazy(() => import('../../trace/trace-view'));
const places: Places = { trace: (id) => ({ page: 'open', id }), pair: (a, b) => ({ page: 'open', id: `${a}...${b}` }), typical: false };

/** The page `open`: traces of files, which are processed in the browser only. */
export default function OpenPage() {
  const { route } = view.value;
  const id = route.page === 'open' ? route.id ?? '' : '';
  const known = content.value.traces.some((trace) => trace.traceID === id);
  const [a, b] = id.split('...');
  useEffect(() => { void prepare().catch(() => undefined); CompareView.preload(); TraceView.preload(); }, []);
  if (b !== undefined && content.value.traces.length > 0) return <CompareView a={a} b={b} sourceOf={sourceOf} places={places} />;
  return known ? <FileTracePage key={id} id={id} /> : <FilesPage missing={id} />;
}

/** The choice of files, and the traces in them. `missing` is a trace of the URL that no open file has. */
function FilesPage({ missing }: { missing: string }) {
  const { traces } = content.value;
  const busy = reading.value > 0;
  useTitle(t('Open files'));
  useEffect(() => { if (traces.length > 0) announce(tn(traces.length, '{traces} trace', '{traces} traces', { traces: count(traces.length) })); }, [traces.length]);
  return (
    <>
      <Progress active={busy} label={t('Reading files')} />
      <div class={css.page}>
        <header class={css.head}>
          <h1>{traces.length > 0 ? <Found /> : t('Open traces from files')}</h1>
          <p class={css.facts}>{t('Files are read in this browser. Nothing is uploaded.')}</p>
        </header>
        {missing && !busy && <div class={css.notice}><Partial><Text of="Trace {missing} is not in an open file. Files are not kept when the page is reloaded: open the file again." missing={<code>{missing}</code>} /></Partial></div>}
        <DropZone small={traces.length > 0} />
        <Problems />
        {traces.length > 0 ? <TraceList traces={traces} /> : <Formats />}
      </div>
    </>
  );
}

/** "12 traces with 3,402 spans in 2 files". */
function Found() {
  const { traces } = content.value;
  const spans = traces.reduce((n, trace) => n + trace.spans, 0);
  const files = new Set(traces.map((trace) => trace.file)).size;
  return <>{t('{traces} with {spans} in {files}', {
    traces: tn(traces.length, '{n} trace', '{n} traces', { n: count(traces.length) }),
    spans: tn(spans, '{n} span', '{n} spans', { n: count(spans) }),
    files: tn(files, '{n} file', '{n} files', { n: count(files) }),
  })}</>;
}

/** Where such files come from. */
function Formats() {
  return (
    <dl class={css.formatList}>
      <dt>{t('Jaeger')}</dt><dd><Text of="“Download Jaeger JSON” of a trace, here or in Jaeger; responses of {api}" api={<code>/api/traces</code>} /></dd>
      <dt>{t('OTLP')}</dt><dd><Text of="“Download OTLP JSON” of a trace; files of the OpenTelemetry Collector’s file exporter, one object per line; responses of Tempo and of {api}" api={<code>/api/v3/traces</code>} /></dd>
      <dt>{t('Zipkin')}</dt><dd><Text of="“Download JSON” of a trace in Zipkin; responses of {api} and {api2}, also of version 1" api={<code>/api/v2/trace</code>} api2={<code>/api/v2/traces</code>} /></dd>
    </dl>
  );
}

/** A trace of an open file. */
function FileTracePage({ id }: { id: string }) {
  const source = useMemo<TraceSource | null>(() => sourceOf(id), [id]);
  const [model, setModel] = useState<TraceModel | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useTitle(model ? sentenceText(model) : t('Trace'));
  useEffect(() => {
    let current = true;
    source?.load(view.peek().skew).then((m) => { if (current && m) setModel(m); }, (e: unknown) => { if (current) setError(e as Error); });
    return () => { current = false; };
  }, [source]);
  if (error) return <div class={css.page}><div class={css.notice}><Failure what={t('The trace cannot be shown')} error={error} /></div></div>;
  return source && model ? <TraceView source={source} model={model} /> : <Progress active label={t('Reading the trace')} />;
}
