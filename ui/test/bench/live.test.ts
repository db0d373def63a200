// `make bench-ui`: what the live view costs at 20,000 spans/s: acknowledgements with and without a viewer, frames, and memory over time.
// LIVE_SECONDS sets how long memory is watched.

import { readFileSync } from 'node:fs';
import type { Browser, CDPSession } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from '../browser/browser.ts';
import { Program } from '../browser/program.ts';
import { sendLoad } from './spans-load.ts';
import { median, printTable, quantile, report } from './table.ts';

const rate = 20_000;
const rounds = Number(process.env.RUNS ?? 8);
const roundSeconds = 5;
const watched = Number(process.env.LIVE_SECONDS ?? 60);
const sampleSeconds = 10;

let program: Program;
let browser: Browser;
let url: string;
let receiver: string;

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  [url, receiver] = await Promise.all([program.url(), program.address('otlp', 'protocols.http')]);
});

afterAll(async () => {
  printTable();
  await browser?.close();
  await program?.stop();
});

/** Sends spans for some time while `during` runs. */
async function loaded<T>(seconds: number, during: () => Promise<T>): Promise<{ latencies: number[]; result: T }> {
  const stop = new AbortController();
  const sending = sendLoad(receiver, rate, stop.signal);
  const [result] = await Promise.all([during(), new Promise((resolve) => setTimeout(resolve, seconds * 1000))]);
  stop.abort();
  const { latencies, refused } = await sending;
  expect(refused).toBe(0);
  return { latencies, result };
}

/** Reads the events of traces, as the page does. Returns their number. */
async function view(signal: AbortSignal): Promise<number> {
  let traces = 0;
  try {
    const response = await fetch(`${url}/api/ui/v1/tail?of=traces`, { signal });
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) traces += part.split('event: trace').length - 1;
  } catch (e) {
    if (!signal.aborted) throw e;
  }
  return traces;
}

test('acknowledgements with and without a viewer', { timeout: 600_000 }, async () => {
  await loaded(roundSeconds / 2, () => Promise.resolve()); // files and connections are there
  const [without, withViewer, shown]: number[][] = [[], [], []];
  const all: [number[], number[]] = [[], []]; // without and with a viewer
  const medians: [number[], number[]] = [[], []];
  for (let i = 0; i < rounds; i++) {
    const order = i % 2 ? [true, false] : [false, true];
    for (const viewer of order) {
      const stop = new AbortController();
      const viewing = viewer ? view(stop.signal) : Promise.resolve(0);
      const { latencies } = await loaded(roundSeconds, () => Promise.resolve());
      stop.abort();
      const traces = await viewing;
      (viewer ? withViewer : without).push(quantile(latencies, 0.99));
      medians[viewer ? 1 : 0].push(median(latencies));
      all[viewer ? 1 : 0].push(...latencies);
      if (viewer) shown.push(traces / roundSeconds);
    }
  }
  report('live: p99 of acknowledgements without a viewer', '', 'ms', without);
  report('live: p99 of acknowledgements with a viewer', '', 'ms', withViewer);
  report('live: p99 with a viewer / without', '', '', withViewer.map((p99, i) => p99 / without[i]));
  report('live: p99 with a viewer / without, all rounds together', '', '', [quantile(all[1], 0.99) / quantile(all[0], 0.99)]);
  report('live: p50 with a viewer / without', '', '', medians[1].map((p50, i) => p50 / medians[0][i]));
  report('live: traces sent to the viewer', '20', '/s', shown);
  expect(median(shown)).toBeGreaterThan(1);
});

/** Lengths of the frames since the last call in milliseconds. Runs in the page. */
function takeFrames(): number[] {
  const w = window as unknown as { frameLengths?: number[] };
  if (!w.frameLengths) {
    const frames: number[] = (w.frameLengths = []);
    let last = 0;
    const step = (now: number): void => {
      if (last) frames.push(now - last);
      last = now;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
  return w.frameLengths.splice(0);
}

/** JavaScript heap of the page in MB, after a garbage collection. */
async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  return ((await session.send('Runtime.getHeapUsage')) as { usedSize: number }).usedSize / 1e6;
}

/** Seconds for which the main thread of the page has worked. */
async function workOf(session: CDPSession): Promise<number> {
  const { metrics } = (await session.send('Performance.getMetrics')) as { metrics: { name: string; value: number }[] };
  return metrics.find((m) => m.name === 'TaskDuration')!.value;
}

/** Anonymous memory of the server in MB; 0 where the system does not tell. */
function serverMemory(): number {
  try {
    return Number(/RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${program.pid}/status`, 'utf8'))?.[1] ?? 0) / 1e3;
  } catch {
    return 0;
  }
}

test('frames and memory of the page', { timeout: (watched + 120) * 1000 }, async () => {
  const { page, problems } = await newPage(browser);
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const [heap, server, frames, slow, work, idle]: number[][] = [[], [], [], [], [], []];
  const { latencies } = await loaded(watched, async () => {
    await page.goto(url + '/open'); // a page that does nothing, to compare with
    await page.evaluate(takeFrames);
    await page.waitForTimeout(sampleSeconds * 1000);
    idle.push(quantile(await page.evaluate(takeFrames), 0.95));
    await page.goto(url + '/search?live=1');
    await page.getByRole('region', { name: 'Live traces' }).getByText(/showing 1 in \d+/).waitFor({ timeout: 60_000 });
    await page.evaluate(takeFrames);
    for (let i = 0; i < Math.floor(watched / sampleSeconds) - 2; i++) {
      const [worked, at] = [await workOf(session), performance.now()];
      await page.waitForTimeout(sampleSeconds * 1000);
      work.push(((await workOf(session)) - worked) / ((performance.now() - at) / 1000) * 100);
      const lengths = await page.evaluate(takeFrames);
      frames.push(quantile(lengths, 0.95));
      slow.push(Math.max(...lengths));
      heap.push(await heapOf(session));
      server.push(serverMemory());
    }
  });
  const third = Math.ceil(heap.length / 3);
  report('live: p99 of acknowledgements with the page open', '', 'ms', [quantile(latencies, 0.99)]);
  report('live: frames of an idle page, p95', '', 'ms', idle);
  report('live: frames, p95', '17', 'ms', frames);
  report('live: frames, longest', '', 'ms', slow);
  report('live: main thread busy', '', '%', work);
  report(`live: JavaScript heap, first third of ${watched} s`, '', 'MB', heap.slice(0, third));
  report(`live: JavaScript heap, last third of ${watched} s`, '', 'MB', heap.slice(-third));
  report(`live: server, first third of ${watched} s`, '', 'MB', server.slice(0, third));
  report(`live: server, last third of ${watched} s`, '', 'MB', server.slice(-third));
  expect(await page.getByRole('grid', { name: 'Traces' }).getByRole('row').count()).toBeGreaterThan(10);
  expect(problems).toEqual([]);
  await page.context().close();
});
