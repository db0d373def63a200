// Every page and main state in Firefox, and what depends most on a browser: keys and pointers.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { large, newPage, pointAt, small } from './browser.ts';
import { launchFirefox } from './firefox.ts';
import { Program } from './program.ts';
import { sendShop } from './shop.ts';
import { states } from './states.ts';

let program: Program;
let browser: Browser;
let page: Page;
let problems: string[];
let url: string;
let checkout: string;

/** Responses that a state has on purpose. */
const expected: Record<string, number> = { 'explore with a mistake': 400, 'missing trace': 404 };

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), launchFirefox(process.env.FIREFOX!)]);
  url = await program.url();
  const traces = await sendShop(program, 600);
  checkout = traces.findLast((t) => t[0].name === 'POST /checkout' && t[0].error)![0].traceID;
  ({ page, problems } = await newPage(browser));
  page.on('requestfailed', (r) => {
    if (r.failure()!.errorText !== 'NS_BINDING_ABORTED') problems.push(`${r.failure()!.errorText}: ${r.url()}`); // by the page
  });
  page.on('response', (r) => {
    if (r.status() >= 400) problems.push(`status ${r.status()}: ${r.url()}`);
  });
});

afterAll(() => Promise.all([browser?.close(), program?.stop()]));

/** Canvases on which nothing is drawn. */
function blank(): Promise<string[]> {
  return page.evaluate(() => {
    const copy = new OffscreenCanvas(64, 64).getContext('2d', { willReadFrequently: true })!;
    return [...document.querySelectorAll('canvas')].filter((canvas) => {
      if (!canvas.checkVisibility() || canvas.width === 0) return false;
      copy.clearRect(0, 0, 64, 64);
      copy.drawImage(canvas, 0, 0, 64, 64);
      return copy.getImageData(0, 0, 64, 64).data.every((value) => value === 0);
    }).map((canvas) => canvas.closest('[aria-label]')?.getAttribute('aria-label') ?? canvas.outerHTML);
  });
}

test.each(states.filter((s) => !s.narrow))('$name has its content and its charts, and fits into 390 px', async ({ name, path, reach }) => {
  await page.setViewportSize(large);
  await page.goto(url + path(checkout));
  await reach(page);
  await expect.poll(blank).toEqual([]);
  for (const size of [large, small]) {
    await page.setViewportSize(size);
    // Pages scroll within: with a second scroll bar, less fits.
    await expect.poll(() => page.evaluate(() => ({ width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight }))).toEqual(size);
  }
  expect(problems.splice(0).filter((p) => !p.startsWith(`status ${expected[name]}:`))).toEqual([]);
});

test('a rectangle of the heatmap is selected, explained and filtered', async () => {
  await page.setViewportSize(large);
  await page.goto(url + '/search');
  await page.getByText(/^\d+ with errors$/).first().waitFor();
  const box = await pointAt(page.getByRole('application'), 2, 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, box.y + 90, { steps: 3 });
  await page.mouse.up();
  await page.getByText(/^\d+ selected$/).first().waitFor();
  await page.getByRole('tab', { name: 'Explain' }).click();
  await page.getByRole('region', { name: 'Time on the critical path' }).getByText('PlaceOrder').first().waitFor();
  await page.goBack();
  const facet = page.getByRole('complementary', { name: 'Facets' }).getByRole('region', { name: 'service', exact: true });
  await facet.getByRole('button', { name: 'payment', exact: true }).click();
  await page.getByRole('button', { name: 'service payment', exact: true }).waitFor();
  expect(problems).toEqual([]);
});

test('keys open a service, nodes of the map, a trace, its spans and its tabs', async () => {
  await page.goto(url);
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('combobox').fill('pay');
  await page.getByRole('option', { name: /payment/ }).first().waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toContain('/services/payment');
  await page.goto(url + '/dependencies?focus=checkout');
  const nodes = page.getByRole('group', { name: /^Map of/ }).getByRole('button');
  await nodes.filter({ hasText: 'checkout' }).focus();
  await page.keyboard.press('ArrowLeft');
  await nodes.filter({ hasText: 'gateway' }).and(page.locator(':focus')).waitFor();
  await page.goto(`${url}/trace/${checkout}`);
  const tree = page.getByRole('treegrid', { name: 'Spans' });
  const details = page.getByRole('complementary', { name: 'Span details' });
  await tree.getByRole('row').first().waitFor();
  await tree.focus();
  for (const key of ['ArrowDown', 'j', 'e', 'Enter']) await page.keyboard.press(key);
  await details.getByRole('heading').first().waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => details.count()).toBe(0);
  await page.keyboard.press('f');
  await page.getByRole('tab', { name: 'Flame graph', selected: true }).waitFor();
  expect(problems).toEqual([]);
});
