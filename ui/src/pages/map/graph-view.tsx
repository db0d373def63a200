import { useMemo, useRef, useState } from 'preact/hooks';
import { edgePath } from '../../charts/graph-layout';
import { Button, classes } from '../../shell/controls';
import { fixed, percentile, rate, share } from '../../shell/format';
import { useKeys } from '../../shell/keys';
import { serviceColor } from '../../shell/service-color';
import { t, tn } from '../../shell/text';
import { isFailing, isSlow, type Graph, type MapEdge, type MapNode } from './model';
import { isLabeled, shortName, valueOf, widthOf, type Metric } from './picture';
import { nodeHeight, type Placed } from './use-layout';
import { useZoom } from './use-zoom';
import css from './graph-view.module.css';

/** Properties of GraphView. */
export interface GraphViewProps {
  placed: Placed;
  focus: string;
  /** Name of the selected node, or names of both nodes of the selected edge. */
  pick: string[];
  metric: Metric;
  onPick: (names: string[]) => void;
  onFocus: (name: string) => void;
  onOpen: (group: string) => void;
}

/** The drawing. Nodes are one tab stop; arrow keys go to the nearest one. The table has the same data. */
export function GraphView(props: GraphViewProps) {
  const { placed, focus, pick } = props;
  const { graph, layout } = placed;
  const box = useRef<HTMLDivElement>(null);
  const [hover, setHover] = useState<string[]>([]);
  const [current, setCurrent] = useState('');
  const found = graph.nodes.findIndex((n) => n.name === (focus || pick[0]));
  const center = Math.max(0, found);
  const at: [number, number] = found >= 0 ? [layout.x[found], layout.y[found]] : [0, layout.height / 2];
  const { zoom, dragged, by, pan, reset, reveal } = useZoom(box, { width: layout.width, height: layout.height, center: at, key: placed.shape });
  useKeys(t('Map'), [
    { keys: ['+', '='], label: t('Zoom in'), run: () => by(1.25) },
    { keys: ['-'], label: t('Zoom out'), run: () => by(0.8) },
    { keys: ['0'], label: t('Show everything'), run: reset },
    ...pans.map(([key, x, y, label]) => ({ keys: ['Shift ' + key], label, run: () => pan(x, y) })),
  ]);
  const go = (i: number): void => {
    setCurrent(graph.nodes[i].name);
    reveal(layout.x[i], layout.y[i]);
    box.current!.querySelector<SVGGElement>(`[data-node="${i}"]`)?.focus({ preventScroll: true });
  };
  const key = (e: KeyboardEvent, i: number): void => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
    const node = graph.nodes[i];
    const next = e.key.startsWith('Arrow') ? nearest(placed, i, e.key) : -1;
    if (next >= 0) go(next);
    else if (e.key === 'Enter' || e.key === ' ') props.onPick([node.name]);
    else if (e.key === 'f' && !node.members) props.onFocus(node.name);
    else if (e.key === 'o' && node.members) props.onOpen(node.name);
    else if (!e.key.startsWith('Arrow')) return;
    e.preventDefault();
  };
  const stop = graph.nodes.some((n) => n.name === current) ? current : graph.nodes[center]?.name;
  return (
    <div ref={box} class={css.box}>
      <svg class={css.drawing} role="group" aria-label={t('Map of {services} and {edges}. The table has the same data.', { services: tn(graph.nodes.length, '{n} service', '{n} services'), edges: tn(graph.edges.length, '{n} edge', '{n} edges') })}>
        <Arrows />
        <g transform={`translate(${zoom.dx.toFixed(1)} ${zoom.dy.toFixed(1)}) scale(${zoom.k.toFixed(4)})`}>
          <Edges {...props} hover={hover} onHover={setHover} dragged={dragged} />
          {graph.nodes.map((n, i) => (
            <Node
              key={n.name} n={n} i={i} placed={placed} state={stateOf(n, props)} stop={n.name === stop} onKeyDown={(e) => key(e, i)} onHover={(on) => setHover(on ? [n.name] : [])}
              onClick={() => { if (!dragged()) props.onPick([n.name]); }} onFocusIn={() => { setCurrent(n.name); reveal(layout.x[i], layout.y[i]); }} onDblClick={() => (n.members ? props.onOpen(n.name) : props.onFocus(n.name))}
            />
          ))}
        </g>
      </svg>
      <div class={css.zoom}>
        <Button kind="quiet" icon="plus" label={t('Zoom in')} onClick={() => by(1.25)} />
        <Button kind="quiet" icon="minus" label={t('Zoom out')} onClick={() => by(0.8)} />
        <Button kind="quiet" icon="expand" label={t('Show everything')} onClick={reset} />
      </div>
    </div>
  );
}

const pans: [string, number, number, string][] = [['ArrowLeft', 80, 0, t('Move left')], ['ArrowRight', -80, 0, t('Move right')], ['ArrowUp', 0, 80, t('Move up')], ['ArrowDown', 0, -80, t('Move down')]];

/** Index of the nearest node in the direction of an arrow key, -1 if there is none. */
export function nearest({ layout }: Pick<Placed, 'layout'>, i: number, key: string): number {
  const [ux, uy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
  let best = -1;
  let least = Infinity;
  layout.x.forEach((x, j) => {
    const [dx, dy] = [x - layout.x[i], layout.y[j] - layout.y[i]];
    const along = dx * ux + dy * uy;
    const far = along + 3 * Math.abs(dx * uy + dy * ux);
    if (j !== i && along > 1 && far < least) [best, least] = [j, far];
  });
  return best;
}

/** The class of a node for its state. */
function stateOf(n: MapNode, { focus, pick }: GraphViewProps): string {
  return n.name === focus ? css.focus : pick.length === 1 && pick[0] === n.name ? css.picked : isFailing(n, n.requests) ? css.bad : '';
}

/** Kinds of edges. */
const kinds = { plain: css.plain, near: css.near, bad: css.bad, slow: css.slow };

/** Arrow heads in the colors of edges. */
function Arrows() {
  return (
    <defs>
      {Object.entries(kinds).map(([kind, style]) => (
        <marker key={kind} id={`map-arrow-${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class={style} d="M1 1 7 4 1 7" /></marker>
      ))}
    </defs>
  );
}

interface NodeProps {
  n: MapNode;
  i: number;
  placed: Placed;
  state: string;
  stop: boolean;
  onKeyDown: (e: KeyboardEvent) => void;
  onClick: () => void;
  onDblClick: () => void;
  onFocusIn: () => void;
  onHover: (on: boolean) => void;
}

function Node({ n, i, placed, state, stop, onHover, ...events }: NodeProps) {
  const { layout, widths, graph } = placed;
  const width = widths[i];
  const bad = isFailing(n, n.requests);
  const color = { '--c': n.members ? 'var(--text-3)' : serviceColor(n.name) };
  const failed = n.requests > 0 && n.errors > 0 ? share(n.errors / n.requests) : '';
  const rounded = n.peer ? nodeHeight / 2 : 4;
  return (
    <g
      class={classes(css.node, state, n.peer && css.peer)} transform={`translate(${(layout.x[i] - width / 2).toFixed(1)} ${(layout.y[i] - nodeHeight / 2).toFixed(1)})`} style={color}
      role="button" tabindex={stop ? 0 : -1} aria-pressed={state === css.picked} aria-label={nodeLabel(n, graph.seconds)} data-node={i} onPointerEnter={() => onHover(true)} onPointerLeave={() => onHover(false)} {...events}
    >
      <title>{nodeLabel(n, graph.seconds)}</title>
      {n.members && <rect class={css.behind} x="4" y="-4" width={width} height={nodeHeight} rx={rounded} />}
      <rect class={css.frame} width={width} height={nodeHeight} rx={rounded} />
      {n.peer ? <rect class={css.diamond} x="15.5" y="10.5" width="7" height="7" transform="rotate(45 19 14)" /> : <rect class={css.square} x="11" y="10" width="8" height="8" rx="2" />}
      <text class={css.name} x="28" y="18">{shortName(n.name)}</text>{' '}
      <text class={css.second} x="28" y="34">
        {sizeText(n, graph.seconds)}
        {failed && <> · <tspan class={bad ? css.alarm : undefined}>{bad ? '⬢ ' : ''}{failed}</tspan></>}
      </text>
    </g>
  );
}

function sizeText(n: MapNode, seconds: number): string {
  return n.members ? tn(n.members.length, '{n} service', '{n} services') : `${rate(n.requests / seconds)}/s`;
}

/** What the drawing says of a node, in the same order and in words. */
function nodeLabel(n: MapNode, seconds: number): string {
  const failed = n.requests > 0 && n.errors > 0 ? share(n.errors / n.requests) : '';
  const drawn = `${shortName(n.name)} ${sizeText(n, seconds)}${failed && ` · ${isFailing(n, n.requests) ? '⬢ ' : ''}${failed}`}`;
  const parts = [failed ? t('{drawn} errors', { drawn }) : drawn];
  if (n.p95 !== null) parts.push(`p95 ${percentile(n.p95)}`);
  if (n.peer && !n.members) parts.push(t('sends no spans'));
  if (shortName(n.name) !== n.name) parts.push(n.name);
  return parts.join(', ');
}

interface EdgesProps extends GraphViewProps {
  hover: string[];
  onHover: (names: string[]) => void;
  dragged: () => boolean;
}

/** Edges below nodes; those that matter above the others. */
function Edges({ placed, focus, pick, metric, hover, onPick, onHover, dragged }: EdgesProps) {
  const { graph } = placed;
  const largest = useMemo(() => graph.edges.reduce((m, e) => Math.max(m, valueOf(e, metric)), 0), [graph, metric]);
  const paths = useMemo(() => graph.edges.map((e, i) => (e.from === e.to ? loopPath(placed, e.from) : edgePath(placed.layout, i))), [placed.layout]);
  const levels = graph.edges.map((e) => levelOf(graph, e, focus, pick, hover));
  const order = graph.edges.map((_, i) => i).sort((a, b) => levels[a] - levels[b]);
  return (
    <>
      {order.map((i) => {
        const e = graph.edges[i];
        const kind = isFailing(e, e.calls) ? 'bad' : isSlow(e) ? 'slow' : levels[i] > 0 ? 'near' : 'plain';
        const ends = [graph.nodes[e.from].name, graph.nodes[e.to].name];
        return (
          <g key={i} class={classes(css.edge, levels[i] > 1 && css.strong)} aria-hidden="true" data-edge={ends.join('>')} onClick={() => { if (!dragged()) onPick(ends); }} onPointerEnter={() => onHover(ends)} onPointerLeave={() => onHover([])}>
            <path class={css.hit} d={paths[i]} />
            <path class={css.weight} d={paths[i]} style={{ '--w': widthOf(valueOf(e, metric), largest).toFixed(1) }} />
            <path class={kinds[kind]} d={paths[i]} marker-end={`url(#map-arrow-${kind})`} />
          </g>
        );
      })}
      {order.map((i) => (levels[i] > 1 || isLabeled(graph, graph.edges[i], focus) ? <Label key={i} placed={placed} i={i} /> : null))}
    </>
  );
}

/** 2: selected or under the pointer, 1: of the focus or of such a node, 0: any other. */
function levelOf(g: Graph, e: MapEdge, focus: string, pick: string[], hover: string[]): number {
  const [a, b] = [g.nodes[e.from].name, g.nodes[e.to].name];
  const is = (names: string[]): boolean => names.length === 2 && names[0] === a && names[1] === b;
  const touches = (name: string | undefined): boolean => name !== undefined && (a === name || b === name);
  if (is(pick) || is(hover) || (hover.length === 1 && g.edges.length <= 300 && touches(hover[0]))) return 2;
  return touches(focus || undefined) || (pick.length === 1 && touches(pick[0])) ? 1 : 0;
}

/** A loop above the right corner of a node, for calls to itself. */
function loopPath({ layout, widths }: Placed, i: number): string {
  const [x, y] = [layout.x[i] + widths[i] / 2, layout.y[i] - nodeHeight / 2];
  return `M${x - 22} ${y}C${x - 22} ${y - 26} ${x + 22} ${y - 18} ${x} ${y + 12}`;
}

/** p95 and share of errors on an edge. */
function Label({ placed, i }: { placed: Placed; i: number }) {
  const { graph, layout } = placed;
  const e = graph.edges[i];
  const loop = e.from === e.to;
  const x = loop ? layout.x[e.from] + placed.widths[e.from] / 2 + 14 : layout.labels[2 * i];
  const lines = e.p95 !== null && e.errors > 0 ? 2 : 1;
  const y = loop ? layout.y[e.from] - nodeHeight / 2 - 16 - 19 * (lines - 1) : layout.labels[2 * i + 1];
  const bad = isFailing(e, e.calls);
  return (
    <text class={css.label} x={x} y={y - 5} aria-hidden="true">
      {e.p95 !== null && <tspan class={isSlow(e) ? css.late : undefined}>{isSlow(e) ? '▲ ' : ''}{percentile(e.p95)}{isSlow(e) && e.usual && ` (${fixed(e.p95 / e.usual, 1)}×)`}</tspan>}
      {e.errors > 0 && <tspan class={bad ? css.alarm : undefined} x={x} dy={e.p95 === null ? 0 : 19}>{bad ? '⬢ ' : ''}{share(e.errors / e.calls)}</tspan>}
    </text>
  );
}
