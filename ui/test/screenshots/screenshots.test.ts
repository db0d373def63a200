// `make ui-screenshots`: pictures of every page, light and dark, on a large and a small screen.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { large, launch, newPage, small } from '../browser/browser.ts';
import { Program } from '../browser/program.ts';
import { sendShop } from '../browser/shop.ts';

const folder = process.env.SCREENSHOTS!;

let browser: Browser;
let program: Program;
let empty: Program;
let slowest = '';

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  [browser, program, empty] = await Promise.all([launch(), Program.start(), Program.start()]);
  const checkouts = (await sendShop(program)).map((trace) => trace[0]).filter((root) => root.name === 'POST /checkout');
  slowest = checkouts.reduce((a, b) => (b.duration > a.duration ? b : a)).traceID;
});

afterAll(() => Promise.all([browser?.close(), program?.stop(), empty?.stop()]));

interface Shot {
  name: string;
  path: () => string;
  program?: () => Program;
  /** Brings the page into the state of the picture. */
  prepare?: (page: Page) => Promise<void>;
}

const shots: Shot[] = [
  { name: 'first-run', path: () => '/', program: () => empty },
  { name: 'overview', path: () => '/' },
  { name: 'explore', path: () => '/search' },
  { name: 'explore-query', path: () => '/search?q=' + encodeURIComponent('{ service = "checkout" && duration > 1s }') },
  { name: 'explore-error', path: () => '/search?q=' + encodeURIComponent('{ nam = "x" }') },
  { name: 'explore-none', path: () => '/search?q=' + encodeURIComponent('{ service = "unknown" }') },
  { name: 'trace', path: () => `/trace/${slowest}` },
  { name: 'trace-missing', path: () => '/trace/00000000000000000000000000000001' },
  { name: 'open', path: () => '/open' },
  { name: 'status', path: () => '/status' },
  { name: 'compare', path: () => `/trace/${slowest}...${slowest}` },
  { name: 'dependencies', path: () => '/dependencies' },
  { name: 'unknown', path: () => '/nothing/here' },
  { name: 'palette', path: () => '/', prepare: (page) => page.keyboard.press('Control+k') },
  { name: 'keys', path: () => '/', prepare: (page) => page.keyboard.press('?') },
];

for (const shot of shots) {
  test(shot.name, async () => {
    const url = await (shot.program?.() ?? program).url();
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const viewport of [large, small]) {
        const { page } = await newPage(browser, { colorScheme, viewport, reducedMotion: 'reduce' });
        await page.goto(url + shot.path());
        await page.locator('main').waitFor();
        await settle(page);
        await shot.prepare?.(page);
        await page.waitForTimeout(300);
        const file = join(folder, `${shot.name}-${colorScheme}-${viewport.width}.png`);
        expect((await page.screenshot({ path: file })).length).toBeGreaterThan(1000);
        await page.context().close();
      }
    }
  });
}

/** Waits until no request was sent for a while. Pages that poll never stop for long. */
async function settle(page: Page): Promise<void> {
  let last = Date.now();
  const begun = last;
  const note = (): void => {
    last = Date.now();
  };
  page.on('request', note);
  page.on('requestfinished', note);
  while (Date.now() - last < 500 && Date.now() - begun < 5000) await page.waitForTimeout(50);
  page.off('request', note);
  page.off('requestfinished', note);
}
