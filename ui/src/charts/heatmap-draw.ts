import { colorsOf } from './colors';
import { shadeOf, type HeatGrid } from './heatmap-model';

const hues = ['ok', 'mix', 'err'] as const;
const names = ['heat-0', ...hues.flatMap((h) => [1, 2, 3, 4, 5, 6, 7].map((n) => `heat-${h}-${n}`))];

// Computing colors makes the browser lay out the page first, so they are kept for each theme.
const kept = { theme: '', colors: new Map<string, string>() };

function colorsIn(theme: string, at: Element): Map<string, string> {
  if (kept.theme !== theme) Object.assign(kept, { theme, colors: colorsOf(names, at) });
  return kept.colors;
}

/** Draws the cells, with gaps of 1 px where cells are large enough. `theme` names the state of the theme. Returns the time it took in milliseconds. */
export function drawHeatmap(canvas: HTMLCanvasElement, g: HeatGrid, width: number, height: number, theme: string): number {
  const colors = colorsIn(theme, canvas.parentElement!);
  const began = performance.now();
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const ctx = canvas.getContext('2d')!;
  ctx.fillStyle = colors.get('heat-0')!;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  for (const [color, cells] of byColor(g)) {
    ctx.fillStyle = colors.get(color)!;
    for (const at of cells) fillCell(ctx, g, at, canvas, scale);
  }
  return performance.now() - began;
}

/** Cells by color, because changing the color is the slow part. */
function byColor(g: HeatGrid): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  for (let at = 0; at < g.count.length; at++) {
    if (g.count[at] === 0) continue;
    const { hue, level } = shadeOf(g.count[at], g.errors[at], g.max);
    const name = `heat-${hue}-${level}`;
    const list = groups.get(name);
    if (list) list.push(at);
    else groups.set(name, [at]);
  }
  return groups;
}

/** Edges are whole pixels, so that gaps have the same width everywhere. */
function fillCell(ctx: CanvasRenderingContext2D, g: HeatGrid, at: number, size: { width: number; height: number }, scale: number): void {
  const [column, row] = [Math.floor(at / g.rows), at % g.rows];
  const edge = (i: number, n: number, length: number): number => Math.round((i / n) * length);
  const [x0, x1] = [edge(column, g.columns, size.width), edge(column + 1, g.columns, size.width)];
  const [y0, y1] = [edge(g.rows - row - 1, g.rows, size.height), edge(g.rows - row, g.rows, size.height)];
  const gap = Math.round(scale);
  ctx.fillRect(x0, y0, Math.max(1, x1 - x0 - (x1 - x0 > 3 * gap ? gap : 0)), Math.max(1, y1 - y0 - (y1 - y0 > 2 * gap ? gap : 0)));
}
