// What the server receives: polled while something shows it.

import { effect, signal } from '@preact/signals';
import { ApiError, authorization, get, tenant, unreadable } from '../api/client';
import type { Ingest } from '../api/types';
import { config } from './config';
import { millis } from './format';
import { t } from './text';

/** Counters at a time in milliseconds since the epoch. */
export interface Sample {
  at: number;
  received: number;
  receivers: Record<string, number>;
}

/** The last answer, rates from the samples of this page, and the error of the last request. */
export interface IngestState {
  data: Ingest | null;
  samples: Sample[];
  error: ApiError | null;
}

const fast = 2000; // until the first rate is known, and while nothing was received
const slow = 5000;
const refused = 60_000; // the route is missing or needs credentials: a change of credentials asks at once
const maxSamples = 120;
const rateWindow = 10_000;

let stop = (): void => {};

const attempt = signal(0);

/** Asks at once. */
export function retryIngest(): void {
  attempt.value++;
}

/** State of ingestion. */
export const ingest = signal<IngestState>({ data: null, samples: [], error: null }, { watched() { stop = poll(); }, unwatched() { stop(); } });

function poll(): () => void {
  return effect(() => {
    void [authorization.value, tenant.value, attempt.value];
    const abort = new AbortController();
    let timer = 0;
    const ask = async (): Promise<void> => {
      if (!document.hidden) await update(abort.signal);
      if (!abort.signal.aborted) timer = window.setTimeout(ask, interval(ingest.peek()));
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  });
}

function interval(s: IngestState): number {
  if (s.error) return s.error.passing ? Math.max(fast, s.error.retryAfter * 1000) : refused;
  return s.samples.length < 3 || s.data?.received === 0 ? fast : slow;
}

async function update(signal: AbortSignal): Promise<void> {
  const before = ingest.peek();
  try {
    const { data } = await get<Ingest>('ingest', {}, { signal });
    ingest.value = { data, samples: addSample(before.samples, before.data, data), error: null };
  } catch (e) {
    if (!signal.aborted) ingest.value = { ...before, error: e instanceof ApiError ? e : new ApiError(0, unreadable) };
  }
}

/** Adds the counters of an answer; starts again after a restart of the server. */
export function addSample(samples: Sample[], before: Ingest | null, data: Ingest): Sample[] {
  const kept = before && before.since === data.since ? samples.slice(-maxSamples + 1) : [];
  const receivers = Object.fromEntries(data.receivers.map((r) => [r.name + ' ' + r.protocol, r.received]));
  return [...kept, { at: millis(data.now), received: data.received, receivers }];
}

/** Spans per second in the last ten seconds, or null if there is only one sample. `receiver` is `NAME PROTOCOL`. */
export function currentRate(samples: Sample[], receiver?: string): number | null {
  const last = samples.at(-1);
  const first = samples.find((s) => last && s.at >= last.at - rateWindow);
  if (!last || !first || last.at - first.at < 500) return null;
  return (value(last, receiver) - value(first, receiver)) / ((last.at - first.at) / 1000);
}

/** Rates between the samples, oldest first. */
export function rateSeries(samples: Sample[], receiver?: string): number[] {
  return samples.slice(1).map((s, i) => Math.max(0, (value(s, receiver) - value(samples[i], receiver)) / Math.max(0.001, (s.at - samples[i].at) / 1000)));
}

function value(s: Sample, receiver?: string): number {
  return receiver === undefined ? s.received : s.receivers[receiver] ?? 0;
}

/** Whether the server does not show to tenants what all of them together send. */
export function hiddenFromTenants(): boolean {
  return config.value?.capabilities.tenancy ?? false;
}

const protocols: Record<string, string> = { grpc: 'gRPC', http: 'HTTP', udp: 'UDP' };
const receiverNames: Record<string, string> = { otlp: 'OTLP', zipkin: 'Zipkin', thriftudp: t('Jaeger agent'), native: t('Jaeger collector') };

const recently = 3_600_000;

/** Whether spans were dropped, or spans or requests refused in the last hour. `now` is in milliseconds since the epoch. */
export function troubled(data: Ingest, now: number): boolean {
  const refused = data.receivers.some((r) => (r.refused > 0 || r.refusedRequests > 0) && (!r.refusal || now - millis(r.refusal.at) < recently));
  return data.dropped > 0 || refused;
}

/** Receivers in the order for readers: OTLP first. */
export function orderedReceivers(data: Ingest): Ingest['receivers'] {
  const known = Object.keys(receiverNames);
  const rank = (name: string): number => (known.includes(name) ? known.indexOf(name) : known.length);
  return [...data.receivers].sort((a, b) => rank(a.name) - rank(b.name));
}

/** Name of a receiver for readers: `OTLP over HTTP`, `otlp/internal over gRPC`. */
export function receiverLabel(r: Pick<Ingest['receivers'][number], 'name' | 'protocol'>): string {
  return `${receiverNames[r.name] ?? r.name}${r.protocol ? t(' over {protocol}', { protocol: protocols[r.protocol] ?? r.protocol }) : ''}`;
}
