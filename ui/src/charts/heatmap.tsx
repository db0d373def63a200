import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Heatmap } from '../api/types';
import { classes } from '../shell/controls';
import { Tip } from '../shell/floating';
import { axisDuration, clock, count, monthDay, duration, percent, type Zone } from '../shell/format';
import { announce } from '../shell/live-region';
import { zone } from '../shell/preferences';
import { t, tn } from '../shell/text';
import { useSize, type Size } from '../shell/use-size';
import type { Box } from '../shell/url';
import { useThemeVersion } from './colors';
import { drawHeatmap } from './heatmap-draw';
import { apart, boxOf, cellsOf, columnOf, durationAt, durationTicks, gridOf, marginal, quantileRow, rowOf, thingsText, timeTicks, type Cell, type HeatGrid } from './heatmap-model';
import css from './heatmap.module.css';

/** A vertical line with a label, at milliseconds since the epoch. */
export interface TimeMark {
  at: number;
  label: string;
}

interface HeatmapChartProps {
  data: Heatmap;
  box: Box | null;
  marks: TimeMark[];
  onBox: (box: Box | null) => void;
  /** Opens the slowest example of the cell with these limits. */
  onOpen: (cell: Box) => void;
  /** Describes that example, or returns "" if it is not known yet. */
  example: (cell: Box) => string;
  /** The time moves on: a new column slides in during its step, unless motion is to be reduced. */
  slides?: boolean;
}

/** Durations over time: color is the number of spans or traces, hue the share of errors. Drag selects, click opens an example; arrow keys do the same. */
export function HeatmapChart({ data, box, marks, onBox, onOpen, example, slides }: HeatmapChartProps) {
  const plot = useRef<HTMLDivElement>(null);
  const size = useSize(plot);
  const g = useMemo(() => gridOf(data, Math.max(24, Math.floor(size.height / 4.5))), [data, size.height]);
  const [drag, setDrag] = useState<Box | null>(null);
  const [cell, setCell] = useState<Cell | null>(null);
  const pointer = usePointer(plot, g, { setDrag, setCell, onBox, onOpen });
  const key = useKeys(g, cell, { setCell, box, onBox, onOpen });
  const shown = drag ?? box;
  const slide = useSlide(g, size.width, !!slides);
  return (
    <div class={css.chart}>
      <DurationAxis g={g} height={size.height} box={shown} />
      <div
        ref={plot} class={css.plot} tabIndex={0} role="application" aria-roledescription={t('heatmap')} onKeyDown={key} onBlur={() => setCell(null)} {...pointer}
        aria-label={t('Durations of {things} over time. Arrow keys move, Shift with arrow keys selects, Enter opens the slowest example, Escape clears the selection. Table view has the same numbers.', { things: thingsText(g.of) })}
      >
        <div class={css.cells}><div ref={slide} class={classes(css.layer, slides && css.sliding)}><Cells g={g} width={size.width} height={size.height} /></div></div>
        {marks.map((m, i) => <MarkLine key={m.at + m.label} mark={m} g={g} named={i === 0 || size.width > 900} />)}
        {shown && <BoxMark g={g} box={shown} />}
        {cell && !drag && size.width > 0 && <CellTip g={g} cell={cell} size={size} example={example} />}
      </div>
      <Marginal g={g} height={size.height} box={shown} />
      <TimeAxis g={g} width={size.width} box={shown} />
    </div>
  );
}

/** Moves an element by one column to its place during each step. */
function useSlide(g: HeatGrid, width: number, slides: boolean) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!slides || width === 0 || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const motion = element.current!.animate([{ transform: `translateX(${width / g.columns}px)` }, { transform: 'none' }], g.step);
    return () => motion.cancel();
  }, [g.start, width, slides]);
  return element;
}

function Cells({ g, width, height }: { g: HeatGrid } & Size) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const version = useThemeVersion();
  useLayoutEffect(() => { // together with the place of the canvas, which may slide
    if (width > 0 && height > 0) canvas.current!.dataset.drawn = drawHeatmap(canvas.current!, g, width, height, version).toFixed(1);
  }, [g, width, height, version]);
  return <canvas ref={canvas} class={css.canvas} aria-hidden="true" />;
}

interface Actions {
  onBox: (box: Box | null) => void;
  onOpen: (cell: Box) => void;
  setCell: (cell: Cell | null) => void;
}

const dragDistance = 4;

function usePointer(plot: { current: HTMLElement | null }, g: HeatGrid, { setDrag, setCell, onBox, onOpen }: Actions & { setDrag: (b: Box | null) => void }) {
  const start = useRef<{ x: number; y: number; cell: Cell; dragged: boolean } | null>(null);
  const at = (e: PointerEvent): Cell => {
    const r = plot.current!.getBoundingClientRect();
    const part = (x: number, n: number): number => Math.max(0, Math.min(n - 1, Math.floor(x * n)));
    return { column: part((e.clientX - r.left) / r.width, g.columns), row: part((r.bottom - e.clientY) / r.height, g.rows) };
  };
  return {
    onPointerDown: (e: PointerEvent) => {
      if (e.button !== 0) return;
      plot.current!.setPointerCapture(e.pointerId);
      start.current = { x: e.clientX, y: e.clientY, cell: at(e), dragged: false };
    },
    onPointerMove: (e: PointerEvent) => {
      const s = start.current;
      setCell(at(e));
      if (!s) return;
      s.dragged ||= Math.hypot(e.clientX - s.x, e.clientY - s.y) > dragDistance;
      if (s.dragged) setDrag(boxOf(g, s.cell, at(e)));
    },
    onPointerUp: (e: PointerEvent) => {
      const s = start.current;
      start.current = null;
      setDrag(null);
      if (!s) return;
      if (s.dragged) onBox(boxOf(g, s.cell, at(e)));
      else if (g.count[s.cell.column * g.rows + s.cell.row] > 0) onOpen(boxOf(g, s.cell, s.cell));
      else onBox(null);
    },
    onPointerCancel: () => {
      start.current = null;
      setDrag(null);
    },
    onPointerLeave: () => { if (!start.current) setCell(null); },
  };
}

const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function useKeys(g: HeatGrid, cell: Cell | null, { setCell, box, onBox, onOpen }: Actions & { box: Box | null }) {
  const anchor = useRef<Cell | null>(null);
  return (e: KeyboardEvent): void => {
    const move = moves[e.key];
    if (move && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      const from = cell ?? initialCell(g);
      const to = cell ? { column: clamp(from.column + move[0], g.columns), row: clamp(from.row + move[1], g.rows) } : from;
      setCell(to);
      // The owner of the box announces what is in it.
      if (e.shiftKey) return onBox(boxOf(g, (anchor.current ??= from), to));
      anchor.current = null;
      announce(describe(g, to).join('. '));
    } else if (e.key === 'Enter' && cell && g.count[cell.column * g.rows + cell.row] > 0) onOpen(boxOf(g, cell, cell));
    else if (e.key === 'Escape' && box) {
      e.stopPropagation();
      anchor.current = null;
      onBox(null);
    }
  };
}

function clamp(x: number, n: number): number {
  return Math.max(0, Math.min(n - 1, x));
}

/** The highest cell of the newest column with counts. */
function initialCell(g: HeatGrid): Cell {
  for (let at = g.count.length - 1; at >= 0; at--) if (g.count[at] > 0) return { column: Math.floor(at / g.rows), row: at % g.rows };
  return { column: g.columns - 1, row: 0 };
}

/** Place, counts, and what a click does. */
function describe(g: HeatGrid, c: Cell): string[] {
  const b = boxOf(g, c, c);
  const n = g.count[c.column * g.rows + c.row];
  const errors = g.errors[c.column * g.rows + c.row];
  const place = t('{t0}, {d0} to {d1}', { t0: axisTime(b.t0, g, zone.value), d0: duration(b.d0), d1: duration(b.d1) });
  const what = g.of === 'traces' ? tn(n, '{n} trace', '{n} traces', { n: count(n) }) : tn(n, '{n} span', '{n} spans', { n: count(n) });
  return [place, n === 0 ? t('no {things}', { things: thingsText(g.of) }) : errors ? t('{what}, {errors} with errors ({n})', { what, errors: count(errors), n: percent(errors / n) }) : what];
}

function CellTip({ g, cell, size, example }: { g: HeatGrid; cell: Cell; size: Size; example: (cell: Box) => string }) {
  const n = g.count[cell.column * g.rows + cell.row];
  if (n === 0) return null;
  const [place, counts] = describe(g, cell);
  const known = example(boxOf(g, cell, cell));
  const x = ((cell.column + 1) / g.columns) * size.width + 8;
  const left = x + 240 > size.width ? Math.max(0, x - 256) : x;
  return (
    <Tip x={left} y={Math.max(0, (1 - (cell.row + 1) / g.rows) * size.height - 28)}>
      <div class={css.tipPlace}>{place}</div>
      <div>{counts}</div>
      {known && <div class={css.tipExample}>{t('Slowest example: {known}', { known })}</div>}
      <div class={css.tipHint}>{known ? t('Click opens it, drag selects') : t('Click opens the slowest, drag selects')}</div>
    </Tip>
  );
}

const pct = (x: number): string => `${(x * 100).toFixed(3)}%`;

function BoxMark({ g, box }: { g: HeatGrid; box: Box }) {
  if (!cellsOf(g, box)) return null;
  const clip = (x: number): number => Math.max(0, Math.min(1, x));
  const [l, r] = [clip(columnOf(g, box.t0) / g.columns), clip(columnOf(g, box.t1) / g.columns)];
  const [b, item] = [clip(rowOf(g, box.d0) / g.rows), clip(rowOf(g, box.d1) / g.rows)];
  return <div class={css.box} style={{ left: pct(l), width: pct(r - l), top: pct(1 - item), height: pct(item - b) }} />;
}

/** A line without a name, where names would overlap, has it in its title only. */
function MarkLine({ mark, g, named }: { mark: TimeMark; g: HeatGrid; named: boolean }) {
  const x = columnOf(g, mark.at) / g.columns;
  if (x < 0 || x > 1) return null;
  return <div class={classes(css.mark, x < 0.5 && css.markRight)} style={{ left: pct(x) }} title={mark.label}>{named && <span>{mark.label}</span>}</div>;
}

function DurationAxis({ g, height, box }: { g: HeatGrid; height: number; box: Box | null }) {
  const y = (ns: number): number => 1 - rowOf(g, ns) / g.rows;
  const digits = height < 200 ? 2 : 3; // a small chart has a narrow axis
  const tags = box ? [box.d0, box.d1].filter((ns) => y(ns) > -0.01 && y(ns) < 1.01) : [];
  const places = apart(tags.map(y), 16 / height);
  const free = (ns: number): boolean => places.every((at) => Math.abs(at - y(ns)) * height > 16);
  return (
    <div class={css.yAxis} aria-hidden="true">
      {durationTicks(g, height).filter(free).map((ns) => <span key={ns} style={{ top: pct(y(ns)) }}>{axisDuration(ns)}</span>)}
      {tags.map((ns, i) => <span key={`tag${i}`} class={css.tag} style={{ top: pct(places[i]) }}>{axisDuration(Number(ns.toPrecision(digits)))}</span>)}
    </div>
  );
}

/** Time of day, with seconds only where they say something; the date where the grid is longer than a day. */
function axisTime(ms: number, g: HeatGrid, z: Zone): string {
  const length = g.columns * g.step;
  if (length > 4 * 86_400_000) return monthDay(ms, z);
  return (length > 86_400_000 ? monthDay(ms, z) + ' ' : '') + clock(ms, z, ms % 60_000 === 0 ? 0 : 1);
}

function TimeAxis({ g, width, box }: { g: HeatGrid; width: number; box: Box | null }) {
  const x = (ms: number): number => columnOf(g, ms) / g.columns;
  const z = zone.value;
  const offset = z === 'local' ? -new Date(g.start).getTimezoneOffset() * 60_000 : 0;
  const tags = box ? [box.t0, box.t1].filter((item) => x(item) > -0.01 && x(item) < 1.01) : [];
  const places = apart(tags.map(x), 60 / width).map((at) => Math.min(at, 1 - 20 / width)); // with seconds, within a small screen
  const free = (item: number): boolean => places.every((at) => Math.abs(at - x(item)) * width > 48);
  return (
    <div class={css.xAxis} aria-hidden="true">
      {timeTicks(g, width, offset).filter(free).map((item) => <span key={item} style={{ left: pct(x(item)) }}>{axisTime(item, g, z)}</span>)}
      {tags.map((item, i) => <span key={`tag${i}`} class={css.tag} style={{ left: pct(places[i]) }}>{axisTime(item, g, z)}</span>)}
    </div>
  );
}

const quantiles: [string, number][] = [['p50', 0.5], ['p95', 0.95], ['p99', 0.99]];
const bars = 30; // px

/** Counts of each row, with quantiles: of the selected columns, if any. */
function Marginal({ g, height, box }: { g: HeatGrid; height: number; box: Box | null }): ComponentChildren {
  const cells = box && cellsOf(g, box);
  const sums = cells ? marginal(g, cells.from.column, cells.to.column) : marginal(g);
  const max = Math.max(...sums, 1);
  const y = (row: number): number => (1 - row / g.rows) * height;
  let last = Infinity;
  const lines = quantiles.map(([name, q]) => ({ name, row: quantileRow(sums, q) })).filter((l) => {
    const free = l.row !== null && last - y(l.row) > 11; // labels do not overlap
    if (free) last = y(l.row!);
    return free;
  });
  return (
    <svg class={css.marginal} width="66" height={height} aria-hidden="true">
      {sums.map((n, r) => n > 0 && <rect key={r} class={css.bar} x="0" y={y(r + 1)} width={Math.max(1, Math.sqrt(n / max) * bars)} height={Math.max(1, height / g.rows - 1)} />)}
      {lines.map(({ name, row }) => (
        <g key={name}>
          <path class={css.quantile} d={`M0 ${y(row!)}h34`} />
          <text class={css.quantileName} x="38" y={y(row!) + 4}>{name}<title>{`${name} ${duration(durationAt(g, row!))}`}</title></text>
        </g>
      ))}
    </svg>
  );
}
