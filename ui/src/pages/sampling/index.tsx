import type { MissingTrace, Processes, Strategies as StrategiesOf } from '../../api/deployment';
import { Mark } from '../../shell/icons';
import { AnswerState, Empty, Messages, Progress } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { useTitle } from '../../shell/title';
import { link, view, type Ask } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import { PageTabs } from '../status/page-tabs';
import { AskForm } from './form';
import { Causes, Changes } from './reasons';
import { leadOf } from './sentence';
import { Stages } from './stages';
import { samplerText, Strategies } from './strategies';
import css from './sampling.module.css';

const refresh = 15_000;

/** The page `/sampling`: the sampling strategies of clients, and why a trace is missing. */
export default function SamplingPage() {
  useTitle(t('Sampling'));
  const { ask } = view.value;
  const strategies = useRequest<Processes<StrategiesOf>>('sampling', {}, { every: refresh });
  const asked = ask.service !== '' || ask.trace !== '';
  return (
    <>
      <PageTabs />
      <div class={css.columns}>
        <div class={css.main}>
          <AskForm />
          {asked ? <Answer ask={ask} /> : <Summary data={strategies.data} />}
        </div>
        <aside class={css.side} aria-label={t('Sampling strategies')} tabIndex={0}>
          <AnswerState what={t('Sampling strategies')} answer={strategies} rows={5} />
          {strategies.data && <Providers data={strategies.data} />}
        </aside>
      </div>
    </>
  );
}

function providersOf(data: Processes<StrategiesOf>) {
  return data.processes.flatMap((p) => (p.data?.providers ?? []).map((provider) => ({ provider, process: data.processes.length > 1 ? p.address.replace(/^https?:\/\//, '') || t('this process') : '' })));
}

/** The sentence of the page while no trace is asked about. */
function Summary({ data }: { data: Processes<StrategiesOf> | undefined }) {
  if (!data) return <h1 class={css.sentence}>{t('Sampling')}</h1>;
  const all = providersOf(data);
  const first = all.find((p) => p.provider.default.origin.source !== 'remote')?.provider ?? all[0]?.provider;
  if (!first) return <h1 class={css.sentence}>{t('No process serves sampling strategies: programs decide by themselves which traces they send')}</h1>;
  const own = first.services.length + first.omitted;
  return (
    <>
      <h1 class={css.sentence}>
        {first.adaptive
          ? tn(first.adaptive.operations.length, 'Adaptive sampling of {n} operation, {target} traces/s for each', 'Adaptive sampling of {n} operations, {target} traces/s for each', { target: first.adaptive.targetSamplesPerSecond })
          : tn(own, '{n} service has a strategy or has asked for one; all others keep {share}', '{n} services have a strategy or have asked for one; all others keep {share}', { share: samplerText(first.default.sampler) })}
      </h1>
      <p class={css.sub}>{t('Is a trace missing? Enter its ID, or the service that should have sent it. This page checks every place that drops traces, and everything else that is known: refusals, losses, queues and retention.')}</p>
    </>
  );
}

function Answer({ ask }: { ask: Ask }) {
  const answer = useRequest<MissingTrace>('sampling/explain', { ...ask });
  const { data, loading, messages } = answer;
  const state = <AnswerState what={t('Explanation')} answer={answer} rows={5} />;
  if (!data) return state;
  const lead = leadOf(data);
  return (
    <>
      <Progress active={loading} />
      {state}
      <h1 class={css.sentence}>{lead.mark && <span class={css.mark}><Mark kind={lead.mark} size={16} label="" /></span>}{lead.text}</h1>
      <p class={css.sub} role="status">{lead.sub}</p>
      {data.verdict === 'stored' && data.trace && <p class={css.ways}><a href={link({ page: 'trace', id: data.trace })}>{t('Open the trace')}</a></p>}
      {data.verdict !== 'stored' && data.stored.service === 'known' && <p class={css.ways}><a href={link({ page: 'explore' }, { q: `{ service = ${JSON.stringify(data.service)} }`, range: { from: 'now-1h', to: 'now' } })}>{t('Stored traces of {service}', { service: data.service })}</a></p>}
      {data.stored.similar.length > 0 && <p class={css.ways}>{data.stored.similar.map((s) => <a key={s} href={link({ page: 'sampling' }, { ask: { ...ask, service: s } })}>{t('Ask about {service}', { service: s })}</a>)}</p>}
      <Messages messages={messages} />
      <Stages m={data} />
      <Causes m={data} />
      <Changes m={data} />
    </>
  );
}

function Providers({ data }: { data: Processes<StrategiesOf> }) {
  const all = providersOf(data);
  const silent = data.processes.filter((p) => !p.data);
  return (
    <>
      {all.map(({ provider, process }) => <Strategies key={process + provider.component} p={provider} process={process} />)}
      {all.length === 0 && <NotConfigured peers={data.peers} />}
      {silent.map((p) => <p key={p.address} class={css.silent} role="alert"><Mark kind="error" size={13} label="" /> {p.address.replace(/^https?:\/\//, '')}: <code>{p.error}</code></p>)}
      {data.peers === 0 && all.length > 0 && <p class={css.hint}>{t('These are the strategies of this process. To see the strategies of collectors and agents, list the addresses of their admin extensions in {key}.', { key: 'extensions.query.peers.endpoints' })}</p>}
    </>
  );
}

const example = `extensions:
  sampling:
    adaptive:
      storage: disk
processors:
  adaptive_sampling:
    sampling: sampling`;

/** What to set if no process serves strategies. */
function NotConfigured({ peers }: { peers: number }) {
  return (
    <Empty title={t('No sampling extension is configured')}>
      <div class={css.setup}>
        <p>{peers > 0 ? t('None of the processes has the sampling extension. Programs use the sampler in their own settings.') : t('This process has no sampling extension. If collectors run elsewhere, list the addresses of their admin extensions in extensions.query.peers.endpoints. Otherwise, programs use the sampler in their own settings.')}</p>
        <p>{t('To decide in one place which traces programs send, add the extension, for example with a target for each operation:')}</p>
        <pre><code>{example}</code></pre>
        <p>{t('Programs then ask the collector: OTEL_TRACES_SAMPLER=jaeger_remote, or JAEGER_SAMPLER_TYPE=remote.')}</p>
      </div>
    </Empty>
  );
}
