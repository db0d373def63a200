import { config } from '../shell/config';
import { Button, classes } from '../shell/controls';
import { Menu } from '../shell/floating';
import { count, duration, percent, percentile, short, shortID } from '../shell/format';
import { Icon, Mark } from '../shell/icons';
import { lazy } from '../shell/lazy';
import { Name } from '../shell/name';
import { ServiceMark, ServiceSwatch } from '../shell/service-mark';
import { ShareMenu, textOf, type Finding } from '../shell/share';
import { t, Text, TextN, tn } from '../shell/text';
import { Time } from '../shell/time';
import { link, navigate } from '../shell/url';
import { traceActions, useArchive } from './actions';
import { Incomplete } from './incomplete';
import { operation, serviceName, shownService } from './model/span';
import { saysIdle } from './model/sentence';
import { flag, type Part, type TraceModel } from './model/types';
import { goToNext } from './moves';
import type { TraceState } from './state';
import css from './header.module.css';

const IncidentFact = lazy<{ state: TraceState }>(() => import('./incident-fact'));
const TraceLinks = lazy<{ state: TraceState }>(() => import('./trace-links'));

/** Head of the trace page: where this is, the sentence about the critical path, and a line of facts. */
export function Header({ state, collapsed, hideFacts }: { state: TraceState; collapsed: boolean; hideFacts: boolean }) {
  return (
    <header class={css.header}>
      <Crumb state={state} />
      {!collapsed && <Sentence state={state} />}
      {!collapsed && !hideFacts && <Facts state={state} />}
    </header>
  );
}

function Crumb({ state }: { state: TraceState }) {
  const model = state.model.value;
  const root = model.roots.length > 0 ? model.roots[0] : -1;
  const archive = useArchive(state.source);
  return (
    <div class={css.crumb}>
      {state.source.kind === 'server' ? <a href={link({ page: 'explore' })}>{t('Explore')}</a> : <a href={link({ page: 'open' })}>{t('Open')}</a>}
      <span class={css.slash} aria-hidden="true">/</span>
      {root >= 0 && <span class={css.service}><ServiceMark name={serviceName(model, shownService(model, root))} strong /></span>}
      <Name class={css.operation} text={root >= 0 ? operation(model, root) : t('Trace without spans')} />
      <code class={css.id} title={model.traceID}>{shownID(model.traceID)}</code>
      {state.source.file && <span class={css.file} title={state.source.file}>{state.source.file}</span>}
      <span class={css.grow} />
      {root >= 0 && config.value?.links?.some((l) => l.on === 'trace') && <TraceLinks state={state} />}
      {state.source.kind === 'server' && <a class={css.compare} href={link({ page: 'compare', a: model.traceID, b: 'baseline' })} aria-label={t('Compare with typical')} title={t('Compare with a typical trace of the same root')}><Icon name="compare" /><span class={css.wide}>{t('Compare with typical')}</span></a>}
      {archive && <Button kind="quiet" icon="archive" onClick={archive} class={css.wide}>{t('Archive')}</Button>}
      {root >= 0 && state.source.kind === 'server' && <span class={css.wide}><ShareMenu finding={() => findingOf(`${serviceName(model, shownService(model, root))} ${operation(model, root)}`)} /></span>}
      <Menu label={t('Actions')} align="end" items={traceActions(state, archive)} trigger={(p) => <Button kind="quiet" icon="more" label={t('Actions')} {...p} />} />
    </div>
  );
}

/** The sentence of the trace, and the page without its tools. */
function findingOf(root: string): Finding {
  const main = document.getElementById('main')!;
  return { sentence: `${root}: ${textOf(main.querySelector('h1'))}`, href: location.href, parts: [main] };
}

/** Ids of 64 bits are shown whole, without the zeros before them; others by their beginning. */
function shownID(id: string): string {
  const short = id.replace(/^0{16}/, '');
  return short.length > 16 ? `${shortID(short)}…` : short;
}

/** Duration and parts of the critical path. A part limits the rows to its spans. */
function Sentence({ state }: { state: TraceState }) {
  const model = state.model.value;
  const parts = model.sentence;
  return (
    <h1 class={css.sentence}>
      {saysIdle(model)
        ? <Text of="{total}, {idle} of it idle. The other {rest}" total={<b>{duration(model.duration)}</b>} idle={<span title={t('No span runs during this time.')}>{duration(model.idle)}</span>} rest={<b>{duration(model.duration - model.idle)}</b>} />
        : <b>{duration(model.duration)}</b>}
      {parts.length > 0 && <span class={css.colon}>: </span>}
      {parts.map((part, i) => (
        <span key={part.key}>
          <SentencePart state={state} part={part} index={i} />{i < parts.length - 1 ? ', ' : ''}
        </span>
      ))}
    </h1>
  );
}

function SentencePart({ state, part, index }: { state: TraceState; part: Part; index: number }) {
  const chosen = state.part.value === index;
  const select = (): void => {
    navigate({ part: chosen ? '' : part.key }, { replace: true });
    if (!chosen && part.spans.length > 0) state.show(part.spans[0]);
  };
  return (
    <button type="button" class={classes(css.part, chosen && css.chosen, part.kind === 'others' && css.others)} aria-pressed={chosen} title={t('{time} of the critical path. {chosen}', { time: duration(part.time), chosen: chosen ? t('Show all spans.') : t('Show only these spans.') })} onClick={select}>
      {part.kind === 'gap' && <span class={css.gap} aria-hidden="true" />}
      {part.service >= 0 && <ServiceSwatch name={state.model.value.services[part.service]} inferred={part.kind === 'waiting'} />}
      <span>{percent(part.share)} {part.text}</span>
    </button>
  );
}

function Facts({ state }: { state: TraceState }) {
  const model = state.model.value;
  const { facts } = model;
  const [root] = model.roots;
  const bad = facts.errors.length > 0 || (root !== undefined && !!state.usual.value?.mark[root]);
  return (
    <div class={css.facts}>
      <UsualFact state={state} />
      {facts.errors.length > 0 && (
        <button type="button" class={css.errors} title={t('Go to the next error (e)')} onClick={() => goToNext(state, facts.errors)}>
          <Mark kind="error" size={13} label="" /><b>{tn(facts.errors.length, '{n} error', '{n} errors', { n: count(facts.errors.length) })}</b><Icon name="down" size={12} />
        </button>
      )}
      <span><TextN count={model.spans} one="{n} span" other="{n} spans" n={<b>{count(model.spans)}</b>} /></span>
      <span><TextN count={facts.services} one="{n} service" other="{n} services" n={<b>{count(facts.services)}</b>} /></span>
      <span class={css.wide}><Text of="depth {depth}" depth={<b>{facts.depth}</b>} /></span>
      <RootFact model={model} />
      <span><Time at={model.begin} withAge /></span>
      {bad && state.settled.value && <IncidentFact state={state} />}
      <Incomplete facts={facts} spans={model.spans} show={() => goToNext(state, facts.orphans)} />
      {facts.skew.length > 0 && <Skew state={state} />}
      {facts.growing && <span class={css.growing}><Text of="{live}still receiving" live={<span class={css.live} aria-hidden="true" />} /></span>}
    </div>
  );
}

/** Share of a trace from which spans after the end of its root are mentioned. */
const laterShare = 0.01;

/** Says how long the root takes, if other spans run long after it. */
function RootFact({ model }: { model: TraceModel }) {
  const [root] = model.roots;
  if (root === undefined || !(model.flags[root] & flag.root) || model.duration - model.end[root] < laterShare * model.duration) return null;
  const time = duration(model.end[root] - model.start[root]);
  return <span title={t('Other spans run after the root has ended, for example to process messages. Until then, the critical path is the root\'s.')}><Text of="root {time}" time={<b>{time}</b>} /></span>;
}

/** Says that the root takes longer than usual. */
function UsualFact({ state }: { state: TraceState }) {
  const [root] = state.model.value.roots;
  const usual = state.usual.value;
  if (!usual || root === undefined || !usual.mark[root]) return null;
  const op = usual.of[root];
  return (
    <span class={css.slow} title={usual.text(root)}>
      <Mark kind="warn" size={13} label="" />
      <span><Text of="{percentile} of {calls}, usually {p50}" percentile={<b>{usual.percentile(root)}</b>} calls={short(usual.calls[op])} p50={percentile(usual.p50[op])} /></span>
    </span>
  );
}

/** Says by how much times are corrected, and switches the correction. */
function Skew({ state }: { state: TraceState }) {
  const model = state.model.value;
  const [first, ...others] = model.facts.skew;
  const sign = first.shift < 0 ? '' : '+';
  const text = `${model.services[first.service]} ${sign}${duration(first.shift)}${others.length ? t(' and {others} more', { others: others.length }) : ''}`;
  const all = model.facts.skew.map((s) => t('{services} {shift}{shift2} ({spans} spans)', { services: model.services[s.service], shift: s.shift < 0 ? '' : '+', shift2: duration(s.shift), spans: count(s.spans) })).join('\n');
  return (
    <button type="button" class={css.skew} role="switch" aria-checked={state.skew.value} title={t('{all}\nThe clocks of hosts differ: spans would start before or end after their parents. Each is shifted by the smallest amount that fits it into its parent. {click}', { all, click: state.skew.value ? t('Click to show recorded times.') : t('Click to correct them.') })} onClick={() => navigate({ skew: !state.skew.value }, { replace: true })}>
      <Mark kind="partial" size={13} label="" />{state.skew.value ? t('clock skew corrected, {text}', { text }) : t('clock skew not corrected, {text}', { text })}
    </button>
  );
}
