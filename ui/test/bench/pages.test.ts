// `make bench-ui`: times, frames, memory and sizes of the pages, printed beside their budgets. A slow machine fails nothing.
// Each run has a fresh context: empty caches and a new process for the page.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage, type TestPage } from '../browser/browser.ts';
import { Program } from '../browser/program.ts';
import { sendShop } from '../browser/shop.ts';
import { sendSpans } from '../browser/spans.ts';
import { largeTrace, marker } from './large-trace.ts';
import { memoryOf, type Memory } from './memory.ts';
import { clickUntil, foldTo, scrollFrames, watch } from './probe.ts';
import { printTable, quantile, report } from './table.ts';

const runs = Number(process.env.RUNS ?? 5);
const few = Math.min(runs, 3); // of measurements that take long
const sizes = [{ spans: 100, budget: '300' }, { spans: 10_000, budget: '400' }, { spans: 100_000, budget: '700' }];
const largest = 100_000;
const traceOf = (spans: number): string => spans.toString(16).padStart(32, 'a');
/** All levels unfolded. */
const unfolded = `/trace/${traceOf(largest)}?fold=1000`;
const row = '#spans [role="row"]';

let program: Program;
let browser: Browser;
let url: string;

beforeAll(async () => {
  program = await Program.start();
  url = await program.url();
  browser = await connect();
  await sendShop(program);
  for (const { spans } of sizes) {
    const trace = largeTrace(traceOf(spans), spans, Date.now() - 600_000);
    for (let i = 0; i < spans; i += 2000) await sendSpans(program, trace.slice(i, i + 2000));
  }
});

afterAll(async () => {
  printTable();
  await browser?.close();
  await program?.stop();
});

/** Milliseconds after which the window of a new context is at rest: opening it costs more CPU time than a page. */
const windowOpens = 1000;

/** Opens an address in a fresh context; `drawn` is when an element that matches `selector` was drawn. */
async function open(path: string, selector: string): Promise<TestPage & { drawn: number }> {
  const opened = await newPage(browser);
  await opened.page.addInitScript(watch, selector);
  await opened.page.waitForTimeout(windowOpens);
  await opened.page.goto(url + path);
  return { ...opened, drawn: await opened.page.evaluate(() => window.bench.shown) };
}

/** Repeats a measurement in fresh contexts. */
async function repeat<T>(path: string, selector: string, measure: (page: Page, drawn: number) => Promise<T> | T, times = runs): Promise<T[]> {
  const results: T[] = [];
  for (let i = 0; i < times; i++) {
    const { page, problems, drawn } = await open(path, selector);
    results.push(await measure(page, drawn));
    expect(problems).toEqual([]);
    await page.context().close();
  }
  return results;
}

test('first row', async () => {
  await repeat(`/trace/${traceOf(100)}`, row, () => 0, 1); // the first page of a browser starts its processes
  for (const { spans, budget } of sizes) {
    const drawn = await repeat(`/trace/${traceOf(spans)}`, row, async (page, time) => {
      await page.getByText(`${spans.toLocaleString('en')} spans`).first().waitFor();
      return time;
    });
    report(`first row of ${spans.toLocaleString('en')} spans`, budget, 'ms', drawn);
  }
});

test('scroll, and the heap after it', async () => {
  const blank: number[][] = [];
  for (let i = 0; i < few; i++) blank.push(await scrollBlank());
  const rows = await repeat(unfolded, row, async (page) => {
    const count = Number(await page.locator('#spans').getAttribute('aria-rowcount'));
    expect(count).toBeGreaterThan(largest / 2); // repeated siblings are one row
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const before = await taskTime(session);
    const frames = await page.evaluate(scrollFrames, { selector: '#spans', frames: 300 });
    const work = ((await taskTime(session)) - before) / frames.length;
    return { count, frames, work, memory: await memoryOf(page), nodes: await page.evaluate(() => document.getElementsByTagName('*').length) };
  }, few);
  const part = (frames: number[][], share: number): number[] => frames.map((f) => quantile(f, share));
  const frames = rows.map((r) => r.frames);
  report('empty scrolling page, frame p95', '', 'ms', part(blank, 0.95));
  report('empty scrolling page, longest frame', '', 'ms', part(blank, 1));
  report('scroll of 100,000 spans, frame p95', '17', 'ms', part(frames, 0.95));
  report('scroll of 100,000 spans, longest frame', '34', 'ms', part(frames, 1));
  report('scroll of 100,000 spans, CPU time per frame', '', 'ms', rows.map((r) => r.work));
  const ratio = (share: number): number[] => [quantile(frames.flat(), share) / quantile(blank.flat(), share)];
  report('ratio to the empty page, frame p95', '', '', ratio(0.95));
  report('ratio to the empty page, longest frame', '', '', ratio(1));
  const mb = (value: (m: Memory) => number): number[] => rows.map((r) => value(r.memory) / 1e6);
  report('heap of the page after scrolling', '80', 'MB', mb((m) => m.page.usedSize));
  report('heap of the worker', '', 'MB', mb((m) => m.worker.usedSize));
  report('typed arrays of the page', '', 'MB', mb((m) => m.page.backingStorageSize));
  report('typed arrays of the worker', '', 'MB', mb((m) => m.worker.backingStorageSize));
  report('elements of the page', '', '', rows.map((r) => r.nodes));
  report('rows', '', '', rows.map((r) => r.count));
});

/** Frames of a page that shows nothing: what scrolling costs where the processor draws. */
async function scrollBlank(): Promise<number[]> {
  const { page } = await newPage(browser);
  await page.setContent('<div id="blank" style="height: 880px; overflow: auto"><div style="height: 2400000px"></div></div>');
  const frames = await page.evaluate(scrollFrames, { selector: '#blank', frames: 300 });
  await page.context().close();
  return frames;
}

/** Milliseconds that the processor worked for the main thread of the page. */
async function taskTime(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find((m) => m.name === 'TaskDuration')!.value * 1000;
}

test('find', async () => {
  const results = await repeat(unfolded, row, async (page) => {
    const times: { worker: number; server: number }[] = [];
    for (const text of ['reserve', marker]) {
      const before = await page.evaluate(() => window.bench.finds.length);
      await page.getByRole('searchbox', { name: 'Find in trace' }).fill(text);
      await page.waitForFunction((n) => window.bench.finds.length === n + 2, before); // names, then attributes
      times.push(await page.evaluate((n) => {
        const answers = performance.getEntriesByType('resource').filter((e) => e.name.includes('/find?'));
        return { worker: window.bench.finds[n], server: answers[answers.length - 1].duration };
      }, before));
    }
    await page.getByText('100', { exact: true }).first().waitFor(); // one of 1000
    return times;
  }, few);
  report('find in 100,000 spans, worker', '100', 'ms', results.flat().map((t) => t.worker));
  report('find in 100,000 spans, attributes on the server', '', 'ms', results.flat().map((t) => t.server));
});

test('open a span', async () => {
  const times = await repeat(unfolded, row, async (page) => {
    const time = await page.evaluate(clickUntil, { click: `${row}:nth-child(5) [role="gridcell"]`, until: 'aside[aria-label="Span details"] [role="tabpanel"]' });
    await page.getByText('rpc.method').first().waitFor();
    return time;
  });
  report('open a span of 100,000, with attributes', '60', 'ms', times);
});

test('fold and unfold all', async () => {
  const times = await repeat(unfolded, row, async (page) => [await page.evaluate(foldTo, 0), await page.evaluate(foldTo, 1000)]);
  report('fold all of 100,000 spans', '200', 'ms', times.map(([fold]) => fold));
  report('unfold all of 100,000 spans', '200', 'ms', times.map(([, unfold]) => unfold));
});

test('search page', async () => {
  const interactive = await repeat('/search', 'input[role="combobox"][aria-label="Search"]', async (page, time) => {
    await page.getByRole('grid', { name: 'Traces' }).waitFor();
    return time;
  });
  report('/search interactive', '400', 'ms', interactive);
  report('/search, first traces', '400', 'ms', await repeat('/search', '[aria-label="Traces"] tbody tr', (_, time) => time));
});

test('sizes', async () => {
  const start = async (path: string, selector: string): Promise<number[]> => repeat(path, selector, (page) => page.evaluate(() => {
    const files = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
    return files.filter((f) => f.startTime < window.bench.frame && /\.(js|css)$/.test(f.name)).reduce((sum, f) => sum + f.encodedBodySize, 0) / 1024;
  }), 1);
  report('JavaScript and CSS of /search', '80', 'KiB', await start('/search', '[aria-label="Traces"] tbody tr'));
  report('JavaScript and CSS of a trace, with its worker', '85', 'KiB', await start(`/trace/${traceOf(100)}`, row));
  const dist = fileURLToPath(new URL('../../../internal/webui/dist', import.meta.url));
  const files = (readdirSync(dist, { recursive: true }) as string[]).filter((f) => /\.(js|css)\.gz$/.test(f));
  report('JavaScript and CSS of everything', '290', 'KiB', [files.reduce((sum, f) => sum + statSync(join(dist, f)).size, 0) / 1024]);
});
