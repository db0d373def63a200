import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useThemeVersion } from '../../charts/colors';
import { Button } from '../../shell/controls';
import { Tip } from '../../shell/floating';
import { count, duration, percent } from '../../shell/format';
import { useKeys } from '../../shell/keys';
import { announce } from '../../shell/live-region';
import { Progress } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { navigate } from '../../shell/url';
import { timeOnPath } from '../model/grouping';
import { laneIndex, neighbor, spanAt, type LaneIndex } from '../model/lanes';
import { operation, serviceName, shownService } from '../model/span';
import { flag, type Extras, type TraceModel } from '../model/types';
import { activeSpan, bringIntoZoom, setCursor, zoomTo } from '../moves';
import type { TraceState } from '../state';
import { makeAxis, timeAt } from '../timeline/axis';
import { Breaks } from '../timeline/breaks';
import { TimeAxis } from '../timeline/ruler';
import { useWheelZoom } from '../timeline/wheel';
import { useSize } from '../../shell/use-size';
import { drawFlame, laneHeight, type Scene } from './flame-draw';
import { openSpan, useExtras, useShown } from './shown';
import type { TabProps } from './tabs';
import css from './flame.module.css';
import tools from './tools.module.css';

/** The trace as a flame graph: children below their parents, and spans that run at the same time in lanes of their own. */
export default function Flame({ state }: TabProps) {
  const extras = useExtras(state);
  return extras ? <Chart state={state} extras={extras} /> : <Progress active label={t('Calculating the flame graph')} />;
}

function Chart({ state, extras }: { state: TraceState; extras: Extras }) {
  const model = state.model.value;
  const root = state.root.value;
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller);
  const axis = useMemo(() => makeAxis(state.scale.value, state.zoom.value, size.width), [state.scale.value, state.zoom.value, size.width]);
  const index = useMemo(() => laneIndex(model, extras, root), [model, extras, root]);
  const base = root < 0 ? 0 : extras.lane[root];
  const cursor = activeSpan(state) ?? -1;
  const bright = useBright(state);
  const scene = useRef<Scene>(null!);
  scene.current = { model, services: state.colors.value, index, axis, path: state.path.value, bright, selected: state.selected.value, cursor, top: scene.current?.top ?? 0, width: size.width, height: size.height };
  const canvas = useCanvas(scroller, scene);
  useWheelZoom(state, scroller, axis, 0);
  useFlameKeys(state, index, extras, base);
  useScrollTo(state, scroller, cursor >= 0 ? extras.lane[cursor] - base : -1);
  const [hover, setHover] = useState<{ span: number; x: number; y: number } | null>(null);
  const at = (e: MouseEvent): { span: number; x: number; y: number } => {
    const box = scroller.current!.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    return { span: spanAt(model, index, Math.floor((y + scroller.current!.scrollTop) / laneHeight), timeAt(axis, x), 3 / axis.scale), x, y };
  };
  const click = (e: MouseEvent): void => {
    const { span } = at(e);
    if (span < 0) return;
    setCursor(state, span);
    openSpan(state, span);
  };
  const shownTip = hover && hover.span >= 0 ? hover : null;
  return (
    <>
      <div class={tools.bar}>
        <span class={tools.count}>{tn(index.spans.length, '{n} span', '{n} spans', { n: count(index.spans.length) })}, {tn(index.lanes, '{n} lane', '{n} lanes', { n: count(index.lanes) })}</span>
        {state.showPath.value && <span class={css.legend}><i aria-hidden="true" />{t('self time on the critical path')}</span>}
        <span class={tools.grow} />
        <Button kind="quiet" onClick={() => navigate({ tab: 'table' })}>{t('Table view')}</Button>
      </div>
      <TimeAxis state={state} axis={axis} class={css.axis} />
      <div class={css.frame}>
        <div
          ref={scroller} id="spans" class={css.scroller} tabIndex={0} role="application" aria-roledescription={t('flame graph')} onClick={click} onDblClick={(e) => zoomTo(state, at(e).span)}
          onPointerMove={(e) => { const next = at(e); setHover((h) => (h?.span === next.span && h.span < 0 ? h : next)); }} onPointerLeave={() => setHover(null)} onFocus={() => { if (cursor < 0 && index.spans.length > 0) setCursor(state, index.spans[0]); }}
          aria-label={t('Flame graph. Down goes to the first child, up to the parent, left and right along the lane; Enter opens the details, z zooms to the span. Table view has the same spans.')}
        >
          <div class={css.area} style={{ height: `${index.lanes * laneHeight}px` }}><Breaks axis={axis} /><canvas ref={canvas} class={css.canvas} aria-hidden="true" /></div>
        </div>
        {shownTip && <SpanTip model={model} extras={extras} span={shownTip.span} x={Math.min(shownTip.x, size.width - 240)} y={shownTip.y + 12} />}
      </div>
    </>
  );
}

/** Draws after each rendering and while it is scrolled. */
function useCanvas(scroller: { current: HTMLDivElement | null }, scene: { current: Scene }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemeVersion();
  const draw = (): void => {
    const element = canvas.current!;
    const s = scene.current;
    s.top = scroller.current!.scrollTop;
    if (s.width > 0 && s.height > 0) element.dataset.drawn = drawFlame(element, s, theme).toFixed(1);
  };
  const latest = useRef(draw);
  latest.current = draw;
  const drawn = useRef<unknown[]>([]);
  useLayoutEffect(() => {
    const { model, services, index, axis, path, bright, selected, cursor, width, height } = scene.current;
    const now = [model, services, index, axis, path, bright, selected, cursor, width, height, theme];
    if (now.every((x, i) => x === drawn.current[i])) return; // only the tip has changed
    drawn.current = now;
    draw();
  });
  useEffect(() => {
    const element = scroller.current!;
    const follow = (): void => latest.current();
    element.addEventListener('scroll', follow, { passive: true });
    return () => element.removeEventListener('scroll', follow);
  }, []);
  return canvas;
}

/** Spans that filters and find leave, or null for all. The others are faint, because their places say something, too. */
function useBright(state: TraceState): Uint8Array | null {
  const shown = useShown(state);
  const found = state.found.value;
  const [model, limited] = [state.model.value, state.onlySpans.value !== null || state.min.value > 0];
  return useMemo(() => {
    if (!limited && !found) return null;
    const bright = new Uint8Array(model.spans);
    for (const s of shown) bright[s] = 1;
    if (!found) return bright;
    const matching = new Uint8Array(model.spans);
    for (const s of found.spans) matching[s] = bright[s];
    return matching;
  }, [model, shown, found, limited]);
}

function useFlameKeys(state: TraceState, index: LaneIndex, extras: Extras, base: number): void {
  const { subtree, parent } = state.model.value;
  const go = (to: (span: number) => number) => (): void | false => {
    if (document.activeElement?.closest('button, a, [role="tab"], [role="separator"], [role="menu"]')) return false;
    const from = activeSpan(state);
    const span = from === null ? index.spans[0] ?? -1 : to(from);
    if (span < 0) return;
    setCursor(state, span);
    bringIntoZoom(state, span);
    announce(describe(state.model.value, span));
  };
  const root = state.root.value;
  useKeys(t('Flame graph'), [
    { keys: ['ArrowDown', 'j'], label: t('Go to the first child'), run: go((s) => (subtree[s] > 1 ? s + 1 : -1)) },
    { keys: ['ArrowUp', 'k'], label: t('Go to the parent'), run: go((s) => (s === root ? -1 : parent[s])) },
    { keys: ['ArrowRight'], label: t('Next span in the lane'), run: go((s) => neighbor(index, extras.lane[s] - base, s, 1)) },
    { keys: ['ArrowLeft'], label: t('Previous span in the lane'), run: go((s) => neighbor(index, extras.lane[s] - base, s, -1)) },
  ]);
}

function useScrollTo(state: TraceState, scroller: { current: HTMLDivElement | null }, lane: number): void {
  useLayoutEffect(() => {
    const element = scroller.current!;
    if (lane < 0) return;
    const [top, bottom] = [lane * laneHeight, (lane + 1) * laneHeight];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [lane, state.goal.value]);
}

function describe(m: TraceModel, span: number): string {
  const failed = m.flags[span] & flag.error ? `, ${t('error')}` : '';
  return `${serviceName(m, shownService(m, span))} ${operation(m, span)}, ${duration(m.end[span] - m.start[span])}${failed}`;
}

function SpanTip({ model: m, extras, span, x, y }: { model: TraceModel; extras: Extras; span: number; x: number; y: number }) {
  const time = m.end[span] - m.start[span];
  const onPath = useMemo(() => timeOnPath(m.path, m.spans), [m]);
  return (
    <Tip x={x} y={y}>
      <b>{serviceName(m, shownService(m, span))}</b> {operation(m, span)}
      <div>{duration(time)}, {t('{share} of the trace', { share: percent(time / Math.max(1, m.duration)) })}</div>
      <div>{t('self {self}, on the critical path {path}', { self: duration(extras.self[span]), path: duration(onPath[span]) })}</div>
      {(m.flags[span] & flag.error) !== 0 && <div>{t('error')}</div>}
    </Tip>
  );
}
