// What is drawn on and below a bar, as backgrounds.

import type { TraceModel, Usual } from '../model/types';
import { pixel, type Axis } from './axis';
import type { Piece } from './bars';

/** Properties of backgrounds. */
export type Layers = {
  backgroundImage?: string;
  backgroundPosition: string;
  backgroundSize: string;
};

const px = (n: number): string => `${Math.round(n * 10) / 10}px`;

const solid = 'linear-gradient(currentColor 0 0)';
const gap = 'repeating-linear-gradient(135deg,currentColor 0 1.5px,var(--bg) 1.5px 5px)';

/** The pieces of a bar on the critical path; null if there are none. */
export function layers(pieces: Piece[]): Layers | null {
  if (pieces.length === 0) return null;
  const images = pieces.map((p) => (p.gap ? gap : solid));
  const positions = pieces.map((p) => px(p.left));
  const sizes = pieces.map((p) => px(p.width));
  return { backgroundImage: images.join(), backgroundPosition: positions.join(), backgroundSize: sizes.join() };
}

/** Fewest pixels of a range that is drawn. */
const minWidth = 4;

/** The usual p50 to p95 of a span from its start, as a bracket of three lines: one along, two across. null if there is none to see. */
export function usualRange(u: Usual, model: TraceModel, span: number, axis: Axis): Layers | null {
  const op = u.of[span];
  if (op < 0 || u.calls[op] < minCalls) return null;
  const from = Math.max(-2, pixel(axis, model.start[span] + u.p50[op]));
  const to = Math.min(axis.width + 2, pixel(axis, model.start[span] + u.p95[op]));
  if (to - pixel(axis, model.start[span]) < minWidth || to < 0 || from > axis.width) return null;
  const [a, b] = [px(from), px(Math.max(to - 1, from + 1))];
  return { backgroundPosition: `${a} calc(100% - 3px),${a} calc(100% - 1px),${b} calc(100% - 1px)`, backgroundSize: `${px(Math.max(to - from, 2))} 1px,1px 5px,1px 5px` };
}

/** Calls from which a range is drawn. */
const minCalls = 20;
