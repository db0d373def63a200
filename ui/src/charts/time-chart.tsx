import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Tip } from '../shell/floating';
import { clock, type Zone } from '../shell/format';
import { t } from '../shell/text';
import { ChartTable } from './chart-table';
import { areaPath, linePath, maxOf, niceTicks, spread } from './scale';
import css from './time-chart.module.css';

/** A line of a chart. */
export interface ChartLine {
  /** Printed at its right end if there are several. */
  name: string;
  values: (number | null)[];
  color: string;
  fill?: string;
}

/** A vertical mark at a time: a change. */
export interface ChartMark {
  /** Milliseconds since the epoch. */
  at: number;
  label: string;
}

/** A point of a chart that leads to another page. */
export interface ChartDot {
  /** Milliseconds since the epoch. */
  at: number;
  value: number;
  color: string;
  label: string;
  href: string;
}

/** Properties of a time chart. */
export interface TimeChartProps {
  /** What it shows, for assistive technology and the table. */
  label: string;
  /** Times of the points in milliseconds since the epoch: the beginnings of steps. */
  times: number[];
  /** End of the last step in milliseconds since the epoch. */
  end: number;
  lines: ChartLine[];
  format: (value: number) => string;
  axis: (value: number) => string;
  zone: Zone;
  height?: number;
  /** The scale reaches at least to this value, so that small noise stays small. */
  floor?: number;
  /** Value that is usual: a gray strip. */
  usual?: number | null;
  marks?: ChartMark[];
  /** Prints the first mark's label; other charts beside it need not repeat it. */
  markLabels?: boolean;
  /** Points for the pointer only: the same links must be elsewhere, too. */
  dots?: ChartDot[];
  /** Prints no names at the right end: they are elsewhere. */
  nameless?: boolean;
  table?: boolean;
  /** Called with milliseconds since the epoch after the user dragged over a range. */
  onSelect?: (from: number, to: number) => void;
}

const left = 52;
const top = 8;
const bottom = 20;
const labelGap = 12;

/** Lines over time with a grid, names at the right end, values under the pointer, and a table as twin. */
export function TimeChart(props: TimeChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = (): void => setWidth(box.current!.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return <div ref={box} class={css.box} style={{ height: `${props.height ?? 164}px` }}>{props.table ? <ChartTable {...props} /> : width > 0 && <Drawing {...props} width={width} />}</div>;
}

function Drawing({ label, times, end, lines, format, axis, zone, height = 164, usual, floor = 0, marks = [], markLabels, dots = [], nameless, onSelect, width }: TimeChartProps & { width: number }) {
  const [hover, setHover] = useState<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const named = lines.length > 1 && !nameless;
  const right = named ? 32 : 8;
  const w = Math.max(1, width - left - right);
  const h = height - top - bottom;
  const start = times[0] ?? 0;
  const max = maxOf(lines.map((l) => l.values), Math.max(usual ?? 0, floor)) * 1.06 || 1;
  const x = (ms: number): number => left + ((ms - start) / Math.max(1, end - start)) * w;
  const y = (v: number): number => top + h - (Math.min(v, max) / max) * h;
  // A value belongs to the middle of its step.
  const middle = (i: number): number => x((times[i] + (times[i + 1] ?? end)) / 2);
  const timeAt = (e: PointerEvent): number => start + ((Math.min(left + w, Math.max(left, e.offsetX)) - left) / w) * (end - start);
  const index = (ms: number): number => Math.max(0, times.findLastIndex((item) => item <= ms));
  const move = (e: PointerEvent): void => {
    setHover(index(timeAt(e)));
    if (drag) setDrag([drag[0], timeAt(e)]);
  };
  const down = (e: PointerEvent): void => {
    if (!onSelect || e.button !== 0 || e.pointerType === 'touch') return;
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
    setDrag([timeAt(e), timeAt(e)]);
  };
  const up = (): void => {
    if (drag && Math.abs(x(drag[1]) - x(drag[0])) > 4) onSelect!(Math.min(...drag), Math.max(...drag));
    setDrag(null);
  };
  const visible = marks.filter((m) => m.at >= start && m.at <= end);
  return (
    <>
      <svg
        width={width} height={height} role="img" aria-label={summary(label, lines, format)} class={onSelect ? css.selectable : undefined}
        onPointerMove={move} onPointerLeave={() => setHover(null)} onPointerDown={down} onPointerUp={up} onPointerCancel={() => setDrag(null)}
      >
        <Grid ticks={niceTicks(max)} y={y} x0={left} x1={left + w} axis={axis} />
        {usual != null && <rect x={left} y={y(usual) - 3} width={w} height="6" fill="var(--band)" />}
        {lines.map((l) => (
          <g key={l.name}>
            {l.fill && <path d={areaPath(l.values, middle, y, top + h)} fill={l.fill} />}
            <path d={linePath(l.values, middle, y)} fill="none" stroke={l.color} stroke-width="1.5" stroke-linejoin="round" />
          </g>
        ))}
        {named && <Names lines={lines} x={left + w + 6} y={y} min={top + 4} max={top + h + 4} />}
        {visible.map((m, i) => <Mark key={m.at + m.label} x={x(m.at)} label={markLabels && i === 0 ? m.label : ''} right={left + w} top={top} bottom={top + h} />)}
        <TimeAxis start={start} end={end} x={x} y={height - 4} zone={zone} />
        {hover !== null && <path d={`M${middle(hover).toFixed(1)} ${top}V${top + h}`} stroke="var(--line-strong)" />}
        {drag && <rect x={Math.min(x(drag[0]), x(drag[1]))} y={top} width={Math.abs(x(drag[1]) - x(drag[0]))} height={h} fill="var(--accent-soft)" fill-opacity=".5" stroke="var(--ink)" />}
      </svg>
      {dots.filter((d) => d.at >= start && d.at <= end && d.value <= max).map((d, i) => (
        <a key={i} class={css.dot} href={d.href} title={d.label} tabIndex={-1} aria-hidden="true" style={{ left: `${x(d.at)}px`, top: `${y(d.value)}px`, '--c': d.color }} />
      ))}
      {hover !== null && !drag && (
        <Tip x={middle(hover) > width / 2 ? Math.max(0, middle(hover) - 150) : middle(hover) + 10} y={top}>
          <span class={css.tipTime}>{clock(times[hover], zone, 0)}</span>
          {lines.map((l) => <span key={l.name} class={css.tipLine}><span>{l.name}</span><b>{l.values[hover] === null || l.values[hover] === undefined ? '–' : format(l.values[hover]!)}</b></span>)}
          {visible.filter((m) => index(m.at) === hover).map((m) => <span key={m.label} class={css.tipTime}>{m.label}</span>)}
        </Tip>
      )}
    </>
  );
}

/** The chart in one sentence. */
function summary(label: string, lines: ChartLine[], format: (v: number) => string): string {
  const parts = lines.map((l) => {
    const known = l.values.filter((v): v is number => v !== null);
    if (known.length === 0) return t('{name}: no data', { name: l.name });
    return t('{name}: {min} to {max}, at the end {at}', { name: l.name, min: format(Math.min(...known)), max: format(Math.max(...known)), at: format(known.at(-1)!) });
  });
  return `${label}. ${parts.join('; ')}`;
}

function Grid({ ticks, y, x0, x1, axis }: { ticks: number[]; y: (v: number) => number; x0: number; x1: number; axis: (v: number) => string }) {
  return (
    <g class={css.axis}>
      {ticks.map((item) => (
        <g key={item}>
          <path d={`M${x0} ${y(item).toFixed(1)}H${x1}`} stroke={item === 0 ? 'var(--line-strong)' : 'var(--grid)'} />
          <text x={x0 - 8} y={y(item) + 4} text-anchor="end">{item === 0 ? '0' : axis(item)}</text>
        </g>
      ))}
    </g>
  );
}

function Names({ lines, x, y, min, max }: { lines: ChartLine[]; x: number; y: (v: number) => number; min: number; max: number }) {
  const last = lines.map((l) => l.values.findLast((v) => v !== null) ?? 0);
  const at = spread(last.map((v) => y(v) + 4), labelGap, min, max);
  return <g class={css.names}>{lines.map((l, i) => <text key={l.name} x={x} y={at[i]}>{l.name}</text>)}</g>;
}

function Mark({ x, label, right, top: y0, bottom: y1 }: { x: number; label: string; right: number; top: number; bottom: number }) {
  const flip = x > right - 110;
  return (
    <g>
      <path d={`M${x.toFixed(1)} ${y0}V${y1}`} stroke="var(--text-2)" stroke-dasharray="2 2" />
      <path d={`M${x.toFixed(1)} ${y1}l4 6h-8Z`} fill="var(--text-2)" />
      {label && <text class={css.markLabel} x={x + (flip ? -5 : 5)} y={y0 + 9} text-anchor={flip ? 'end' : 'start'}>{label}</text>}
    </g>
  );
}

function TimeAxis({ start, end, x, y, zone }: { start: number; end: number; x: (ms: number) => number; y: number; zone: Zone }) {
  const anchors = ['start', 'middle', 'end'] as const;
  const seconds = end - start < 300_000 ? 1 : 0;
  return <g class={css.axis}>{anchors.map((a, i) => <text key={a} x={x(start + ((end - start) * i) / 2)} y={y} text-anchor={a}>{clock(start + ((end - start) * i) / 2, zone, seconds)}</text>)}</g>;
}
