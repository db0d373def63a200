/** Round values from 0 up to `max`, at most `most`. */
export function niceTicks(max: number, most = 4): number[] {
  if (!(max > 0)) return [0];
  const power = 10 ** Math.floor(Math.log10(max / most));
  const step = [1, 2, 2.5, 5, 10, 20].map((m) => m * power).find((s) => Math.floor(max / s + 1e-9) < most)!;
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** Largest number of lists with gaps, at least `floor`. */
export function maxOf(lists: (number | null)[][], floor = 0): number {
  let max = floor;
  for (const list of lists) for (const x of list) if (x !== null && x > max) max = x;
  return max;
}

/** An SVG path through points; gaps (null) are not bridged, and a single point between gaps is a short line. */
export function linePath(values: (number | null)[], x: (i: number) => number, y: (v: number) => number): string {
  let path = '';
  let open = false;
  values.forEach((v, i) => {
    if (v === null) {
      open = false;
      return;
    }
    const single = !open && (values[i + 1] ?? null) === null;
    path += `${open ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}${single ? 'h.8' : ''}`;
    open = true;
  });
  return path;
}

/** Like linePath, closed to the line `y0`: one area for each part between gaps. */
export function areaPath(values: (number | null)[], x: (i: number) => number, y: (v: number) => number, y0: number): string {
  let path = '';
  let start = -1;
  for (let i = 0; i <= values.length; i++) {
    const v = i < values.length ? values[i] : null;
    if (v !== null && start < 0) start = i;
    if (v !== null || start < 0) continue;
    const part = values.slice(start, i) as number[];
    path += `M${x(start).toFixed(1)} ${y0}` + part.map((a, k) => `L${x(start + k).toFixed(1)} ${y(a).toFixed(1)}`).join('') + `L${x(i - 1).toFixed(1)} ${y0}Z`;
    start = -1;
  }
  return path;
}

/** Distributes labels along a line so that they do not overlap: wanted positions in, positions out, in the same order. */
export function spread(wanted: number[], gap: number, min: number, max: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const out = [...wanted];
  let last = -Infinity;
  for (const i of order) last = out[i] = Math.max(min, out[i], last + gap);
  last = Infinity;
  for (const i of order.reverse()) last = out[i] = Math.min(max, out[i], last - gap);
  return out;
}
