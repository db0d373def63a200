// Fetches what is usual for the spans of a trace, once for each trace, and says it in words.

import type { Baseline } from '../api/baseline';
import { get } from '../api/client';
import { fixed, millis, percentile as rounded, short, time } from '../shell/format';
import { zone } from '../shell/preferences';
import { t } from '../shell/text';
import { buildUsual, percentileOf } from './model/usual';
import type { TraceModel, Usual } from './model/types';
import type { TraceState } from './state';
import { whenIdle } from './when-idle';

/** Compares a trace with what is usual, also each newer state of it. Where the server does not know the durations, nothing is shown. */
export function followUsual(state: TraceState, signal: AbortSignal): void {
  get<Baseline>(`baseline/${encodeURIComponent(state.source.traceID)}`, {}, { signal }).then(({ data }) => {
    if (signal.aborted) return;
    const follow = (): void => signal.addEventListener('abort', state.model.subscribe((model) => {
      const usual = buildUsual(model, data);
      state.usual.value = { ...usual, percentile: (span) => percentileText(percentileOf(model, usual, span)), text: (span) => usualText(model, usual, span) };
    }));
    signal.addEventListener('abort', whenIdle(follow)); // it draws all rows again: not while they scroll
  }, () => undefined);
}

/** A share of calls as percentile: `p99.6`, below p99 without decimals; "" if it is not known. */
export function percentileText(share: number | null): string {
  if (share === null) return '';
  return share >= 0.99 ? `p${fixed(Math.min(99.9, Math.floor(share * 1000) / 10), 1)}` : `p${Math.floor(share * 100)}`;
}

/** How long the operation of a span usually takes, and how many calls say so: `p99.4 of 18.2k, usually 180 ms to 240 ms (...)`. */
function usualText(model: TraceModel, u: Usual, span: number): string {
  const op = u.of[span];
  if (op < 0) return '';
  const percentile = percentileText(percentileOf(model, u, span));
  const values = {
    percentile, calls: short(u.calls[op]), p50: rounded(u.p50[op]), p95: rounded(u.p95[op]),
    from: time(millis(u.start), zone.value, Date.now(), 0), to: time(millis(u.end), zone.value, Date.now(), 0),
  };
  if (!percentile) return t('Only {calls} calls of this operation from {from} to {to}', values);
  return t('{percentile} of {calls}, usually {p50} (p50) to {p95} (p95), from {from} to {to}', values);
}
