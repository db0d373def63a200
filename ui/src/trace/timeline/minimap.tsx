import { useEffect, useRef } from 'preact/hooks';
import { duration } from '../../shell/format';
import { theme } from '../../shell/preferences';
import { t, Text } from '../../shell/text';
import { minimap } from '../model/minimap';
import { pathStrip } from '../model/path';
import { sentenceText } from '../model/sentence';
import { timeOf, type TimeScale } from '../model/time-scale';
import type { TraceModel } from '../model/types';
import { setZoom } from '../moves';
import { whenIdle } from '../when-idle';
import type { TraceState } from '../state';
import { useMedia } from '../../shell/use-size';
import { dragHandle, dragRange } from '../../shell/drag';
import { leastZoom, makeAxis, padding } from './axis';
import { Breaks } from './breaks';
import { limit, whole, type Zoom } from './zoom';
import css from './minimap.module.css';

const stripTop = 8;
const stripHeight = 12;
const lanesTop = 26;
const lanes = 40;

/** The whole trace: the critical path as a strip, and all spans below it. The window is the visible part of the time axis. */
export default function Minimap({ state }: { state: TraceState }) {
  const area = useRef<HTMLDivElement>(null);
  const mark = useRef<HTMLDivElement>(null);
  const model = state.model.value;
  const times = state.scale.value;
  const { names, time } = state.layout.value;
  const length = Math.max(1, time - padding);
  const select = (e: PointerEvent): void => {
    if ((e.target as Element).closest('[role="slider"]')) return;
    dragRange(e, area.current!, mark.current!, (a, b) => setZoom(state, limit(a / length, Math.min(1, b / length), leastZoom(times))));
  };
  return (
    <section class={css.minimap} aria-label={t('Whole trace')} style={{ '--name-w': `${names}px` }}>
      <div class={css.labels}>
        <span>{t('Critical path')}</span>
        <span class={css.legend}>
          <span>{t('All spans')}</span>
          <span class={css.key}><i /><Text of="on the path{hollow}off{gap}gap{usual}" hollow={<i class={css.hollow} />} gap={<i class={css.gap} />} usual={state.usual.value && <><i class={css.usual} />{t('usual p50–p95')}</>} /></span>
        </span>
      </div>
      <div ref={area} class={css.area} onPointerDown={select} onDblClick={() => setZoom(state, [0, 1])} title={t('Drag to zoom')}>
        <Breaks axis={makeAxis(times, whole, time)} />
        <Drawing model={model} times={times} services={state.colors.value} width={length} showPath={state.showPath.value} />
        <Window state={state} length={length} />
        <div ref={mark} class={css.range} hidden />
      </div>
    </section>
  );
}

function Drawing({ model, times, services, width, showPath }: { model: TraceModel; times: TimeScale; services: readonly string[]; width: number; showPath: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useMedia('(prefers-color-scheme: dark)');
  const chosen = theme.value;
  const waitsSince = useRef(0); // 0 if the newest state is drawn
  // After the frame with the rows, which are what people wait for, and not while they scroll.
  useEffect(() => {
    if (width <= 1) return;
    waitsSince.current ||= performance.now();
    return whenIdle(() => {
      if (!canvas.current) return; // removed: effects are cleaned up only after the next frame
      waitsSince.current = 0;
      draw(canvas.current, model, times, services, Math.floor(width), showPath);
    }, waitsSince.current);
  }, [model, times, services, width, showPath, dark, chosen]);
  return <canvas ref={canvas} class={css.canvas} style={{ width: `${Math.floor(width)}px` }} role="img" aria-label={t('Critical path of {text}', { text: sentenceText(model) })} />;
}

/** Resolves colors of the tokens for a canvas. */
function resolver(canvas: HTMLCanvasElement): (color: string) => string {
  const probe = document.createElement('span');
  canvas.parentElement!.append(probe);
  const known = new Map<string, string>();
  const resolve = (color: string): string => {
    let value = known.get(color);
    if (value === undefined) {
      probe.style.color = color;
      value = getComputedStyle(probe).color;
      known.set(color, value);
    }
    return value;
  };
  queueMicrotask(() => probe.remove());
  return resolve;
}

function draw(canvas: HTMLCanvasElement, model: TraceModel, times: TimeScale, services: readonly string[], width: number, showPath: boolean): void {
  const scale = Math.min(2, devicePixelRatio || 1);
  canvas.width = width * scale;
  canvas.height = 72 * scale;
  const g = canvas.getContext('2d')!;
  g.scale(scale, scale);
  const resolve = resolver(canvas);
  const colors = services.map(resolve);
  if (showPath) drawStrip(g, model, times, width, colors, resolve('var(--text-3)'));
  drawSpans(g, model, times, width, colors, resolve('var(--error)'));
}

function drawStrip(g: CanvasRenderingContext2D, model: TraceModel, times: TimeScale, width: number, colors: string[], gapColor: string): void {
  const strip = pathStrip(model, width, times);
  for (let x = 0; x < width; x++) {
    if (strip.gap[x]) hatch(g, x, gapColor);
    else if (strip.service[x] >= 0) {
      g.fillStyle = colors[strip.service[x]];
      g.fillRect(x, stripTop, 1, stripHeight);
    }
  }
}

/** One column of diagonal lines. */
function hatch(g: CanvasRenderingContext2D, x: number, color: string): void {
  g.fillStyle = color;
  for (let y = 0; y < stripHeight; y++) if ((x + y) % 5 === 0) g.fillRect(x, stripTop + y, 1, 1);
}

function drawSpans(g: CanvasRenderingContext2D, model: TraceModel, times: TimeScale, width: number, colors: string[], errorColor: string): void {
  const used = Math.min(lanes, model.spans);
  const map = minimap(model, width, used, times);
  const height = lanes / used;
  const line = Math.min(height, used < lanes ? 2 : 1);
  for (let lane = 0; lane < used; lane++) {
    let from = 0;
    for (let x = 1; x <= width; x++) {
      const cell = lane * width + from;
      if (x < width && map.service[lane * width + x] === map.service[cell]) continue;
      if (map.service[cell] >= 0) {
        g.fillStyle = colors[map.service[cell]];
        g.fillRect(from, lanesTop + lane * height, x - from, line);
      }
      from = x;
    }
  }
  g.fillStyle = errorColor;
  for (let i = 0; i < used * width; i++) if (map.error[i]) g.fillRect(i % width, lanesTop + Math.floor(i / width) * height - 0.5, 2, Math.max(2, line + 1));
}

/** The visible part of the time axis, with handles, and of the rows. */
function Window({ state, length }: { state: TraceState; length: number }) {
  const [from, to] = state.zoom.value;
  const zoomed = state.zoomed.value !== null;
  const [left, right] = [from * length, to * length];
  return (
    <>
      {zoomed && <div class={css.shade} style={{ left: '0', width: `${left}px` }} />}
      {zoomed && <div class={css.shade} style={{ left: `${right}px`, right: '0' }} />}
      <RowsMark state={state} left={left} width={right - left} />
      <Handle state={state} end={0} at={left} length={length} />
      <Handle state={state} end={1} at={right} length={length} />
    </>
  );
}

/** Which rows are visible. */
function RowsMark({ state, left, width }: { state: TraceState; left: number; width: number }) {
  const { spans, groups } = state.model.value;
  const { row } = state.rows.value;
  const [first, last] = state.visible.value;
  if (row.length === 0) return null;
  const spanAt = (i: number): number => (row[i] >= 0 ? row[i] : groups.members[groups.offset[~row[i]]]);
  const top = spanAt(Math.min(first, row.length - 1)) / spans;
  const bottom = last >= row.length - 1 ? 1 : (spanAt(last) + 1) / spans;
  return <div class={css.rows} style={{ left: `${left}px`, width: `${width}px`, transform: `translateY(${Math.round(lanesTop + top * lanes - 1)}px)`, height: `${Math.round(Math.max(3, (bottom - top) * lanes + 2))}px` }} />;
}

function Handle({ state, end, at, length }: { state: TraceState; end: 0 | 1; at: number; length: number }) {
  const times = state.scale.value;
  const least = leastZoom(times);
  const set = (fraction: number): void => {
    const zoom: Zoom = [...state.zoom.value];
    zoom[end] = end === 0 ? Math.min(Math.max(0, fraction), zoom[1] - least) : Math.max(Math.min(1, fraction), zoom[0] + least);
    setZoom(state, zoom, true);
  };
  const drag = (e: PointerEvent): void => {
    const { left } = (e.currentTarget as HTMLElement).parentElement!.getBoundingClientRect();
    dragHandle(e, (x) => set((x - left) / length));
  };
  const key = (e: KeyboardEvent): void => {
    const width = state.zoom.value[1] - state.zoom.value[0];
    const step: Record<string, number> = { ArrowLeft: -0.02 * width, ArrowRight: 0.02 * width, PageDown: -0.1 * width, PageUp: 0.1 * width };
    if (e.key === 'Home') set(0);
    else if (e.key === 'End') set(1);
    else if (step[e.key]) set(state.zoom.value[end] + step[e.key]);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const value = state.zoom.value[end];
  const time = timeOf(times, times.length * value);
  return (
    <div
      class={css.handle} data-end={end} role="slider" tabIndex={0} aria-label={end === 0 ? t('Start of the visible time') : t('End of the visible time')} style={{ left: `${at}px` }}
      aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(value * 1000) / 10} aria-valuetext={duration(time)} onPointerDown={drag} onKeyDown={key}
    />
  );
}
