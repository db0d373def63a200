import type { Details, ProcessAnswer, Processes, StatusAnswer } from '../../api/deployment';
import { slowNow } from '../../shell/clock';
import { config } from '../../shell/config';
import { bytes } from '../../shell/format';
import { Elapsed } from './elapsed';
import { Mark } from '../../shell/icons';
import { AnswerState, Partial } from '../../shell/states';
import { t, tn, Text } from '../../shell/text';
import { useTitle } from '../../shell/title';
import { useRequest } from '../../shell/use-request';
import { Equations } from './equation';
import { PageTabs } from './page-tabs';
import { Accounts, Problems, Queues } from './parts';
import { Queries } from './queries';
import { totalRate, useSamples, type Samples } from './rates';
import { Receivers } from './receivers';
import { statusSentence } from './sentence';
import { Side } from './side';
import css from './status.module.css';

const refresh = 5000;
const maxOpen = 3;

/** The page `/status`: what the processes of this deployment receive, drop and store. */
export default function StatusPage() {
  useTitle(t('Status'));
  const answer = useRequest<StatusAnswer>('status', {}, { every: refresh });
  const { data } = answer;
  const samples = useSamples(data);
  if (!data) {
    return (
      <>
        <PageTabs />
        <div class={css.main}>
          <h1>{t('Status')}</h1>
          <AnswerState what={t('Status')} answer={answer} rows={6} />
        </div>
      </>
    );
  }
  const sentence = statusSentence(data, totalRate(samples, data));
  return (
    <>
      <PageTabs />
      <div class={css.columns}>
        <div class={css.main} role="region" aria-label={t('State of the processes')} tabIndex={0}>
          <h1>{sentence.mark && <span class={css.mark}><Mark kind={sentence.mark} size={16} label="" /></span>}{sentence.text}</h1>
          <AnswerState what={t('Status')} answer={answer} />
          <Scope data={data} />
          {data.processes.map((p) => <Process key={p.address} answer={p} all={data} samples={samples} />)}
          {!data.hidden && <Queries queries={data.queries} max={data.maxQueries} now={Date.parse(data.processes.at(-1)?.data?.now ?? '')} />}
        </div>
        <Side data={data} />
      </div>
    </>
  );
}

/** What this page is about: one process, or several. */
function Scope({ data }: { data: Processes<Details> }) {
  const text = data.peers > 0
    ? tn(data.peers, 'This process and {n} other one.', 'This process and {n} others.')
    : t('This page shows the process that serves it. To see other processes, list the addresses of their admin extensions in {key}.', { key: 'extensions.query.peers.endpoints' });
  return <p class={css.facts}>{text}{data.hidden && <> <Partial>{t('Data about all tenants together is not shown to tenants.')}</Partial></>}</p>;
}

/** Name of a process for readers. */
export function processName(p: ProcessAnswer<Details>): string {
  const host = p.address.replace(/^https?:\/\//, '');
  if (p.address === '') return t('This process');
  return p.data?.process ? t('{host} ({process})', { host, process: p.data.process }) : host;
}

function Process({ answer, all, samples }: { answer: ProcessAnswer<Details>; all: Processes<Details>; samples: Samples }) {
  if (!answer.data) {
    return (
      <section class={css.section}>
        <h2 class={css.heading}>{processName(answer)}</h2>
        <p class={css.problem} role="alert"><Mark kind="error" size={13} label="" /> <Text of="No response: {error}" error={<code>{answer.error}</code>} /></p>
      </section>
    );
  }
  const d = answer.data;
  const body = (
    <>
      <Facts d={d} />
      <Problems d={d} />
      {!all.hidden && <Equations balances={d.balances} />}
      <Receivers d={d} address={answer.address} samples={samples} hidden={all.hidden} />
      {!all.hidden && <Accounts d={d} />}
      {d.queues.length > 0 && <Queues queues={d.queues} hidden={all.hidden} />}
      {d.configuration && <Configuration text={d.configuration} />}
    </>
  );
  if (all.processes.length === 1) return <><h2 class="visually-hidden">{processName(answer)}</h2>{body}</>;
  return (
    <details class={css.process} open={all.processes.length <= maxOpen || d.report.status !== 'ok'}>
      <summary class={css.summary}><h2 class={css.heading}>{processName(answer)}</h2><span class={css.state}>{d.report.status !== 'ok' && <Mark kind="warn" size={13} />}</span></summary>
      {body}
    </details>
  );
}

function Configuration({ text }: { text: string }) {
  return (
    <details class={css.process}>
      <summary class={css.summary}><h3 class={css.heading}>{t('Running configuration')}</h3></summary>
      <p class={css.facts}>{t('Secrets are masked; values of environment variables and files are not shown.')}</p>
      <pre class={css.configuration} tabIndex={0} role="region" aria-label={t('Running configuration')}>{text}</pre>
    </details>
  );
}

function Facts({ d }: { d: Details }) {
  const version = d.build.version || d.build.commit.slice(0, 12) || config.value?.version.gitVersion || t('unknown');
  const memory = d.limits.find((l) => l.key === 'soft memory limit');
  return (
    <p class={css.facts}>
      <span><Text of="version {version}" version={<b>{version}</b>} /></span>
      <span><Text of="up {time}" time={<b><Elapsed since={d.since} now={slowNow.value} /></b>} /></span>
      {memory && memory.used > 0 && <MemoryFact used={memory.used} max={memory.max} />}
      <span><Text of="configuration of {time}" time={<b><Elapsed since={d.report.configuration.since} now={slowNow.value} ago /></b>} /></span>
    </p>
  );
}

function MemoryFact({ used, max }: { used: number; max: number }) {
  return <span><Text of="memory {used} of {max}" used={<b>{bytes(used)}</b>} max={bytes(max)} /></span>;
}
