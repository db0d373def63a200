import { linePath, maxOf } from './scale';

/** A small line without axes; the numbers stand beside it. `max` fixes the scale, so that noise stays small. */
export function Sparkline({ values, max, color = 'var(--series-p95)', width = 96, height = 20, dot }: { values: (number | null)[]; max?: number; color?: string; width?: number; height?: number; dot?: boolean }) {
  const top = max ?? (maxOf([values]) * 1.05 || 1);
  const x = (i: number): number => 2 + (i / Math.max(1, values.length - 1)) * (width - 4);
  const y = (v: number): number => height - 2 - (Math.min(v, top) / top) * (height - 4);
  const last = values.at(-1) ?? null;
  return (
    <svg width={width} height={height} aria-hidden="true">
      <path d={linePath(values, x, y)} fill="none" stroke={color} stroke-width="1.25" stroke-linejoin="round" />
      {dot && last !== null && <circle cx={x(values.length - 1)} cy={y(last)} r="1.75" fill={color} />}
    </svg>
  );
}

/** Small bars on a base line. The first part of the width, `unread`, is hatched: nothing is known of it. */
export function MiniBars({ values, max, color = 'var(--series-p50)', width = 88, height = 20, unread = 0 }: { values: (number | null)[]; max?: number; color?: string; width?: number; height?: number; unread?: number }) {
  const top = max ?? (maxOf([values]) || 1);
  const w = width / Math.max(1, values.length);
  return (
    <svg width={width} height={height} aria-hidden="true">
      <path d={`M0 ${height - 0.5}H${width}`} stroke="var(--line-strong)" />
      {unread > 0 && <path d={hatch(unread * width, height - 1)} stroke="var(--line-strong)" data-unread />}
      {values.map((v, i) => {
        const h = v ? Math.max(1, (Math.min(v, top) / top) * (height - 2)) : 0;
        return h > 0 && <rect key={i} x={(i * w).toFixed(1)} y={(height - 1 - h).toFixed(1)} width={Math.max(1, w - (w > 3 ? 1 : 0.25)).toFixed(1)} height={h.toFixed(1)} fill={color} />;
      })}
    </svg>
  );
}

const hatchGap = 4;

/** Diagonal lines over a rectangle. */
function hatch(width: number, height: number): string {
  const lines: string[] = [];
  for (let x = hatchGap; x < width + height; x += hatchGap) {
    const [x1, y1] = [Math.min(x, width), Math.max(0, x - width)];
    const [x2, y2] = [Math.max(0, x - height), Math.min(x, height)];
    lines.push(`M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}`);
  }
  return lines.join('');
}
