import { axisDuration, percentile as rounded, short } from '../../shell/format';
import { Text } from '../../shell/text';
import type { TraceState } from '../state';
import css from './usual.module.css';

const [width, height] = [204, 42];
/** Height of the labels below the bars. */
const labels = 12;

/** How long the operation of a span usually takes, and where the span is among its calls. Nothing if too few calls are known. */
export function UsualDurations({ state, span }: { state: TraceState; span: number }) {
  const usual = state.usual.value;
  const percentile = usual?.percentile(span);
  if (!usual || !percentile) return null;
  const op = usual.of[span];
  const model = state.model.value;
  const slow = usual.mark[span] > 0;
  return (
    <div class={css.usual} title={usual.text(span)}>
      <span>
        <Text of="{percentile} of {calls}" percentile={<b class={slow ? css.slow : css.known}>{slow && '▲ '}{percentile}</b>} calls={short(usual.calls[op])} />
        <br />
        <Text of="usually {p50}, p95 {p95}" p50={rounded(usual.p50[op])} p95={rounded(usual.p95[op])} />
      </span>
      <Histogram counts={usual.counts[op]} first={usual.bucket[op]} takes={model.end[span] - model.start[span]} slow={slow} label={usual.text(span)} />
    </div>
  );
}

/** Number of calls by duration on a logarithmic scale, with a line where the span is. */
function Histogram({ counts, first, takes, slow, label }: { counts: number[]; first: number; takes: number; slow: boolean; label: string }) {
  const at = 8 * Math.log2(Math.max(1, takes));
  const from = Math.min(first, Math.floor(at)) - 1;
  const to = Math.max(first + counts.length, Math.ceil(at)) + 1;
  const x = (bucket: number): number => ((bucket - from) / (to - from)) * width;
  const max = Math.max(...counts);
  const bottom = height - labels - 4;
  const bar = (n: number): number => Math.max(1, (n / max) * (bottom - 4));
  return (
    <svg class={css.histogram} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {counts.map((n, i) => n > 0 && <rect key={i} x={x(first + i)} width={Math.max(1, x(first + i + 1) - x(first + i) - 0.5)} y={bottom - bar(n)} height={bar(n)} />)}
      <path class={css.base} d={`M0 ${bottom + 1}H${width}`} />
      <text x={0} y={height - 1}>{axisDuration(2 ** (from / 8))}</text>
      <text x={width} y={height - 1} text-anchor="end">{axisDuration(2 ** (to / 8))}</text>
      <path class={slow ? css.slowMark : css.mark} d={`M${x(at)} 0V${bottom + 2}`} />
    </svg>
  );
}
