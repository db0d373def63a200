// The programs and the data of the pictures: a shop whose payment service got a bad version, at a fixed time.

import { mkdirSync } from 'node:fs';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { newPage } from '../browser/browser.ts';
import { allInOne, Program } from '../browser/program.ts';
import { minutes, shopTraces } from '../browser/shop.ts';
import { sendSpans } from '../browser/spans.ts';

/** The time of the pictures. The same data at the same time give the same pictures. */
export const now = Date.UTC(2026, 0, 15, 14, 42);
const hour = minutes * 60_000;

/** What the pictures show. */
export interface Scene {
  /** A program with two hours of the shop: all is well in the first one. */
  shop: Program;
  /** A program without data, which offers to load demo data like the preset all-in-one. */
  empty: Program;
  /** The slowest checkout. */
  slowest: string;
}

/** Starts the programs and sends the data. `folder` is where the pictures go. */
export async function makeScene(folder: string): Promise<Scene> {
  mkdirSync(folder, { recursive: true });
  const [shop, empty] = await Promise.all([Program.start(), Program.start(allInOne, ['extensions::query::demo={}'])]);
  const traces = [...shopTraces(2000, now - hour, 2, 0), ...shopTraces(2000, now)];
  for (let i = 0; i < traces.length; i += 100) await sendSpans(shop, traces.slice(i, i + 100).flat());
  const checkouts = traces.map((trace) => trace[0]).filter((root) => root.name === 'POST /checkout');
  const slowest = checkouts.reduce((a, b) => (b.duration > a.duration ? b : a)).traceID;
  await grown(shop, slowest);
  return { shop, empty, slowest };
}

/** Waits until the program expects no more spans of a trace. */
async function grown(program: Program, trace: string): Promise<void> {
  const outline = `${await program.url()}/api/ui/v1/outline/${trace}`;
  while (/"growing":true/.test(await (await fetch(outline)).text())) await new Promise((resolve) => setTimeout(resolve, 1000));
}

/** Opens an empty page whose clock stands still. */
export async function openPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const { page } = await newPage(browser, { reducedMotion: 'reduce', timezoneId: 'UTC', locale: 'en-GB', ...options });
  await page.clock.setFixedTime(now);
  // While that clock stands still, no idle time is left.
  await page.addInitScript(() => { window.requestIdleCallback = (run) => window.setTimeout(() => run({ didTimeout: false, timeRemaining: () => 50 })); });
  // The store has just been filled, and would be too young for a comparison with the hour before.
  await page.route('**/api/ui/v1/ingest', async (route) => {
    const response = await route.fetch();
    const answer = (await response.json()) as { data: { now: string; oldest: string } };
    const nanos = (ms: number): string => `${ms}000000`;
    await route.fulfill({ response, json: { ...answer, data: { ...answer.data, now: nanos(now), oldest: answer.data.oldest && nanos(now - 2 * hour) } } });
  });
  return page;
}

/** Waits until no request was sent for a while, and nothing is said to be loading. Pages that poll never stop for long. */
export async function settle(page: Page): Promise<void> {
  let last = Date.now();
  const begun = last;
  const note = (): void => {
    last = Date.now();
  };
  const busy = page.getByRole('progressbar');
  page.on('request', note);
  page.on('requestfinished', note);
  while ((Date.now() - last < 500 || (await busy.count()) > 0) && Date.now() - begun < 20_000) await page.waitForTimeout(50);
  page.off('request', note);
  page.off('requestfinished', note);
}

/** Marks the slow traces of the last half hour. */
export async function select(page: Page): Promise<void> {
  const box = (await page.getByRole('application').boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.58, box.y + 4);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.995, box.y + box.height * 0.3, { steps: 3 });
  await page.mouse.up();
  await page.mouse.move(700, 880); // away from the chart
}
