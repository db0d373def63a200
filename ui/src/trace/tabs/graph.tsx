import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { edgePath, layoutGraph, type GraphLayout } from '../../charts/graph-layout';
import { Button, classes, Segmented } from '../../shell/controls';
import { count, duration } from '../../shell/format';
import { Name } from '../../shell/name';
import { useRovingRows } from '../../shell/roving';
import { ServiceSwatch } from '../../shell/service-mark';
import { Failure, Partial, Progress } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import { buildGraph, type TraceGraph } from '../model/graph';
import { ownValues, timeOnPath, totalsOf, type Totals } from '../model/grouping';
import { operation, serviceName, shownService } from '../model/span';
import type { TraceModel } from '../model/types';
import { setCursor } from '../moves';
import type { TraceState } from '../state';
import { openSpan, useShown } from './shown';
import type { TabProps } from './tabs';
import css from './graph.module.css';
import tools from './tools.module.css';

const nodeSize = { service: [168, 44], operation: [208, 60] } as const;
type Mode = keyof typeof nodeSize;

/** The services or operations of the trace, and their calls. A node opens its slowest span. */
export default function Graph({ state }: TabProps) {
  const model = state.model.value;
  const mode: Mode = view.value.by.includes('name') ? 'operation' : 'service';
  const shown = useShown(state);
  const { graph, totals } = useMemo(() => {
    const onPath = timeOnPath(model.path, model.spans);
    const columns = (mode === 'service' ? ['service'] : ['service', 'name']).map((key) => ownValues(model, key));
    const built = buildGraph(model, columns, shown, onPath);
    return { graph: built, totals: totalsOf(model, built.groups, onPath, onPath) };
  }, [model, shown, mode]);
  const { layout, error } = useLayout(graph, mode);
  const setMode = (next: Mode): void => navigate({ by: next === 'service' ? ['service'] : ['service', 'name'] }, { replace: true });
  return (
    <>
      <div class={tools.bar}>
        <Segmented label={t('Nodes')} value={mode} segments={[{ value: 'service', label: t('Services') }, { value: 'operation', label: t('Operations') }]} onChange={setMode} />
        <span class={tools.count}>{tn(graph.nodes.length, '{n} node', '{n} nodes', { n: count(graph.nodes.length) })}, {tn(graph.from.length, '{n} edge', '{n} edges', { n: count(graph.from.length) })}</span>
        {graph.omitted > 0 && <Partial>{tn(graph.omitted, '{n} node with less time on the critical path is omitted', '{n} nodes with less time on the critical path are omitted', { n: count(graph.omitted) })}</Partial>}
        <span class={tools.grow} />
        <Button kind="quiet" onClick={() => navigate({ tab: 'statistics', by: mode === 'service' ? ['service'] : ['service', 'name'] })}>{t('Table view')}</Button>
      </div>
      {error && <Failure what={t('The graph cannot be drawn')} error={error} />}
      {!layout && !error && <Progress active label={t('Placing the nodes')} />}
      {layout && <Drawing state={state} graph={graph} totals={totals} layout={layout} mode={mode} />}
    </>
  );
}

function useLayout(graph: TraceGraph, mode: Mode): { layout: GraphLayout | null; error: Error | null } {
  const [answer, setAnswer] = useState<{ graph: TraceGraph; layout: GraphLayout | null; error: Error | null } | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const [width, height] = nodeSize[mode];
    const n = graph.nodes.length;
    const input = { widths: new Float32Array(n).fill(width), heights: new Float32Array(n).fill(height), from: Int32Array.from(graph.from), to: Int32Array.from(graph.to), labels: new Float32Array(graph.from.length).fill(40) };
    layoutGraph(input, abort.signal).then((layout) => setAnswer({ graph, layout, error: null }), (e: unknown) => {
      if (!abort.signal.aborted) setAnswer({ graph, layout: null, error: e instanceof Error ? e : new Error(String(e)) });
    });
    return () => abort.abort();
  }, [graph]);
  return answer?.graph === graph ? answer : { layout: null, error: null };
}

function Drawing({ state, graph, totals, layout, mode }: { state: TraceState; graph: TraceGraph; totals: Totals; layout: GraphLayout; mode: Mode }) {
  const model = state.model.value;
  const nodes = useRef<HTMLDivElement>(null);
  useRovingRows(nodes);
  const most = Math.max(1, ...graph.time);
  const inNode = (g: number, span: number): boolean => span >= 0 && graph.groups.members.subarray(graph.groups.offset[g], graph.groups.offset[g + 1]).includes(span);
  return (
    <div class={css.scroller} id="spans" tabIndex={-1}>
      <div ref={nodes} class={css.area} role="list" aria-label={t('Graph of the trace')} style={{ width: `${layout.width}px`, height: `${layout.height}px` }}>
        <svg class={css.edges} width={layout.width} height={layout.height} aria-hidden="true">
          <marker id="graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8Z" class={css.arrow} /></marker>
          {graph.from.map((_, e) => <path key={e} d={edgePath(layout, e)} class={classes(css.edge, graph.errors[e] > 0 && css.failing)} stroke-width={1 + 2.5 * (graph.time[e] / most)} marker-end="url(#graph-arrow)" />)}
          {graph.from.map((_, e) => <EdgeLabel key={e} graph={graph} layout={layout} edge={e} />)}
        </svg>
        {[...graph.nodes].map((g, i) => <Node key={g} model={model} graph={graph} totals={totals} group={g} index={i} layout={layout} mode={mode} selected={inNode(g, state.selected.value)} onOpen={(span) => { setCursor(state, span); openSpan(state, span); }} />)}
      </div>
    </div>
  );
}

function EdgeLabel({ graph, layout, edge }: { graph: TraceGraph; layout: GraphLayout; edge: number }) {
  const [from, to] = [layout.starts[edge], layout.starts[edge + 1]];
  if (to - from < 4) return null;
  return <text class={css.label} x={layout.labels[2 * edge]} y={layout.labels[2 * edge + 1] - 4}>×{count(graph.calls[edge])}</text>;
}

interface NodeProps {
  model: TraceModel;
  graph: TraceGraph;
  totals: Totals;
  group: number;
  index: number;
  layout: GraphLayout;
  mode: Mode;
  selected: boolean;
  onOpen: (span: number) => void;
}

function Node({ model: m, graph, totals, group, index, layout, mode, selected, onOpen }: NodeProps) {
  const spans = graph.groups.members.subarray(graph.groups.offset[group], graph.groups.offset[group + 1]);
  const slowest = spans.reduce((a, b) => (m.end[b] - m.start[b] > m.end[a] - m.start[a] ? b : a));
  const service = serviceName(m, shownService(m, slowest));
  const [width, height] = nodeSize[mode];
  const errors = totals.errors[group];
  const facts = [`×${count(totals.count[group])}`, duration(totals.total[group]), ...(errors > 0 ? [tn(errors, '{n} error', '{n} errors', { n: count(errors) })] : [])];
  const title = [mode === 'service' ? service : `${service}: ${operation(m, slowest)}`, ...facts, t('{time} on the critical path', { time: duration(totals.onPath[group]) })].join(', ');
  return (
    <div role="listitem" data-row class={css.place} style={{ left: `${layout.x[index] - width / 2}px`, top: `${layout.y[index] - height / 2}px`, width: `${width}px`, height: `${height}px` }}>
      <button type="button" class={classes(css.node, selected && css.selected, errors > 0 && css.failed)} title={title} aria-label={title} onClick={() => onOpen(slowest)}>
        <span class={css.name}><ServiceSwatch name={service} inferred={m.peer[slowest] >= 0} /><Name text={service} title="" /></span>
        {mode === 'operation' && <Name class={css.operation} text={operation(m, slowest)} title="" />}
        <span class={css.facts}>{facts.slice(0, 2).join('  ')}{errors > 0 && <span class={css.errors}> {facts[2]}</span>}</span>
      </button>
    </div>
  );
}
