import { useRef } from 'preact/hooks';
import type { Details, Processes } from '../../api/deployment';

/** Received spans of one process and transport at a time, in milliseconds since the epoch. */
interface Sample {
  at: number;
  received: number;
}

/** The samples of all receivers, by key. */
export type Samples = Record<string, Sample[]>;

const maxSamples = 60;
const minInterval = 500;

/** Key of a receiver in the samples; without one, of the whole process. */
export function keyOf(address: string, component = '', transport = ''): string {
  return [address, component, transport].join('\n');
}

/** Adds the counters of an answer. A counter that went back begins again: the process has restarted. */
export function addSamples(before: Samples, answer: Processes<Details>): Samples {
  const next: Samples = {};
  const add = (key: string, sample: Sample): void => {
    const old = before[key] ?? [];
    const last = old.at(-1);
    if (last && last.at === sample.at) next[key] = old;
    else next[key] = [...(last && last.received > sample.received ? [] : old), sample].slice(-maxSamples);
  };
  for (const { address, data } of answer.processes) {
    if (!data) continue;
    const at = Date.parse(data.now);
    let sum = 0;
    for (const r of data.intake.receivers ?? []) {
      sum += r.received;
      add(keyOf(address, r.component, r.transport), { at, received: r.received });
    }
    add(keyOf(address), { at, received: sum });
  }
  return next;
}

/** Spans per second between samples, oldest first. */
export function rates(samples: Sample[] = []): number[] {
  return samples.slice(1).map((s, i) => ((s.received - samples[i].received) / Math.max(minInterval, s.at - samples[i].at)) * 1000);
}

/** Spans per second of all processes at the end, null if not known. */
export function totalRate(samples: Samples, answer: Processes<Details>): number | null {
  const last = answer.processes.map((p) => rates(samples[keyOf(p.address)]).at(-1)).filter((r) => r !== undefined);
  return last.length > 0 ? last.reduce((a, b) => a + b, 0) : null;
}

/** Samples of the answers that a page has got. */
export function useSamples(answer: Processes<Details> | undefined): Samples {
  const kept = useRef<{ answer?: Processes<Details>; samples: Samples }>({ samples: {} });
  if (answer && kept.current.answer !== answer) kept.current = { answer, samples: addSamples(kept.current.samples, answer) };
  return kept.current.samples;
}
