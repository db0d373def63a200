// Draws the flame graph: bars of the visible lanes, reduced to what can be seen.

import { shorten } from '../../shell/cut';
import { colorSteps } from '../../shell/service-color';
import { firstAfter, type LaneIndex } from '../model/lanes';
import { operation, serviceName, shownService } from '../model/span';
import { flag, type CriticalPath, type TraceModel } from '../model/types';
import type { Axis } from '../timeline/axis';
import { extent, pieces } from '../timeline/bars';

/** Height of a lane in pixels. */
export const laneHeight = 20;

/** What is drawn. */
export interface Scene {
  model: TraceModel;
  /** Colors of the services of the model. */
  services: readonly string[];
  index: LaneIndex;
  axis: Axis;
  path: CriticalPath | null;
  /** Spans to emphasize: 1; null for all. */
  bright: Uint8Array | null;
  selected: number;
  /** Span with the cursor, or -1. */
  cursor: number;
  /** Pixels that are scrolled away at the top. */
  top: number;
  width: number;
  height: number;
}

/** Colors of the theme, as the canvas takes them. */
interface Colors {
  bar: Map<string, string>;
  solid: Map<string, string>;
  text: string;
  error: string;
  errorSoft: string;
  accent: string;
  ink: string;
  font: string;
}

let kept: { theme: string; colors: Colors } | null = null;

function colorsIn(theme: string, at: Element): Colors {
  if (kept?.theme === theme) return kept.colors;
  const probe = document.createElement('span');
  at.append(probe);
  const style = getComputedStyle(probe);
  const color = (value: string): string => {
    probe.style.color = value;
    return style.color;
  };
  const steps = Array.from({ length: colorSteps }, (_, i) => `var(--svc-${i + 1})`);
  const colors = {
    bar: new Map(steps.map((c) => [c, color(`color-mix(in oklab, ${c} 26%, var(--bg))`)])), solid: new Map(steps.map((c) => [c, color(c)])),
    text: color('var(--text)'), error: color('var(--error)'), errorSoft: color('var(--error-soft)'), accent: color('var(--accent)'), ink: color('var(--ink)'), font: `11px ${style.fontFamily}`,
  };
  probe.remove();
  kept = { theme, colors };
  return colors;
}

/** Draws a scene. Returns the time it took in milliseconds. */
export function drawFlame(canvas: HTMLCanvasElement, s: Scene, theme: string): number {
  const colors = colorsIn(theme, canvas.parentElement!);
  const began = performance.now();
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(s.width * scale);
  canvas.height = Math.round(s.height * scale);
  const ctx = canvas.getContext('2d')!;
  ctx.scale(scale, scale);
  ctx.font = colors.font;
  ctx.textBaseline = 'middle';
  const last = Math.min(s.index.lanes, Math.ceil((s.top + s.height) / laneHeight));
  for (let lane = Math.floor(s.top / laneHeight); lane < last; lane++) drawLane(ctx, s, lane, colors);
  ctx.globalAlpha = 1;
  return performance.now() - began;
}

function drawLane(ctx: CanvasRenderingContext2D, s: Scene, lane: number, c: Colors): void {
  const { model: m, index, axis } = s;
  const y = lane * laneHeight - s.top;
  let covered = -1; // pixels that have a bar
  for (let i = firstAfter(m, index, lane, axis.from); i < index.offset[lane + 1]; i++) {
    const span = index.spans[i];
    if (m.start[span] > axis.to) break;
    const bar = extent(axis, m.start[span], m.end[span]);
    const failed = (m.flags[span] & flag.error) !== 0;
    const special = failed || span === s.selected || span === s.cursor || s.bright?.[span] === 1;
    if (bar.right <= covered + 1 && !special) continue; // nothing of it would be seen
    const left = Math.max(bar.left, Math.min(covered, bar.right - 1));
    const width = Math.max(1, bar.right - left - (bar.right - left > 3 ? 1 : 0));
    ctx.globalAlpha = s.bright && !s.bright[span] ? 0.3 : 1;
    const color = s.services[m.peer[span] >= 0 ? m.peer[span] : m.service[span]];
    const onPath = s.path !== null && s.path.offset[span + 1] > s.path.offset[span];
    ctx.fillStyle = failed ? c.errorSoft : (width < 4 && onPath ? c.solid : c.bar).get(color)!;
    ctx.fillRect(left, y + 1, width, laneHeight - 2);
    if (width >= 4) {
      if (onPath) drawPath(ctx, s, span, bar, y, c.solid.get(color)!);
      if (width > 28) drawName(ctx, s, span, left, width, y, c);
    }
    if (failed) edge(ctx, c.error, left, y, width);
    if (span === s.selected || span === s.cursor) outline(ctx, span === s.selected ? c.accent : c.ink, left, y, width);
    covered = Math.max(covered, bar.right);
  }
}

function fill(ctx: CanvasRenderingContext2D, style: string, x: number, y: number, width: number, height: number): void {
  ctx.fillStyle = style;
  ctx.fillRect(x, y, width, height);
}

/** The red edge of a failed span. Where there is space for nothing else, it is the bar. */
function edge(ctx: CanvasRenderingContext2D, color: string, x: number, y: number, width: number): void {
  if (width < 5) return fill(ctx, color, x, y + 1, Math.min(2, width), laneHeight - 2);
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(x + 0.75, y + 1.75, width - 1.5, laneHeight - 3.5);
}

/** Own time on the critical path is a solid line at the bottom; gaps are dotted. */
function drawPath(ctx: CanvasRenderingContext2D, s: Scene, span: number, bar: ReturnType<typeof extent>, y: number, color: string): void {
  for (const piece of pieces(s.model, s.path!, span, false, s.axis, bar)) {
    const from = bar.left + piece.left;
    if (!piece.gap) fill(ctx, color, from, y + laneHeight - 5, piece.width, 4);
    else for (let x = from; x < from + piece.width; x += 6) fill(ctx, color, x, y + laneHeight - 4, Math.min(3, from + piece.width - x), 2);
  }
}

/** Width of a character of the name, about. */
const character = 5.9;

function drawName(ctx: CanvasRenderingContext2D, s: Scene, span: number, left: number, width: number, y: number, c: Colors): void {
  const { model: m } = s;
  const parent = m.parent[span];
  const service = shownService(m, span);
  const name = parent >= 0 && shownService(m, parent) === service ? operation(m, span) : `${serviceName(m, service)}  ${operation(m, span)}`;
  const from = Math.max(left, 0) + 4;
  const fits = Math.floor((Math.min(left + width, s.width) - from - 3) / character);
  if (fits < 3) return;
  const text = shorten(name, fits);
  ctx.fillStyle = c.text;
  ctx.fillText(text, from, y + laneHeight / 2 - 1);
}

function outline(ctx: CanvasRenderingContext2D, color: string, left: number, y: number, width: number): void {
  ctx.globalAlpha = 1;
  ctx.strokeStyle = color;
  ctx.lineWidth = 2;
  ctx.strokeRect(left + 1, y + 1, Math.max(2, width - 2), laneHeight - 2);
}
