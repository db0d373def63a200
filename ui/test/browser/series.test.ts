// Metrics queries in Explore: lines, table, examples, and errors in the search field.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { check } from './axe.ts';
import { connect, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

/** A request to `web`, or every third to `cart`, which takes 20 ms instead of 200 ms. */
function request(i: number): TestSpan {
  const cart = i % 3 === 0;
  return {
    traceID: traceID(), spanID: spanID(), service: cart ? 'cart' : 'web', name: 'GET /', kind: 'server', start: Date.now() - 55 * 60_000 + i * 10_000, duration: cart ? 20 : 200,
    attributes: { route: cart ? '/cart' : '/pay' },
  };
}

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  await sendSpans(program, Array.from({ length: 300 }, (_, i) => request(i)));
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

/** Opens Explore with a query, and checks at the end that nothing failed in it but queries that the server refused. */
async function visit(q: string, use: (page: Page) => Promise<void>, options = {}): Promise<void> {
  const { page, problems } = await newPage(browser, options);
  await page.goto(`${url}/search?q=${encodeURIComponent(q)}`);
  await use(page);
  expect(problems.filter((p) => !p.includes('status of 400'))).toEqual([]);
  await page.context().close();
}

const table = (page: Page) => page.getByRole('grid', { name: 'Series' });
const names = (page: Page): Promise<string[]> => table(page).getByRole('rowheader').allTextContents();
const chart = (page: Page) => page.getByRole('img', { name: /^Series/ });

test('draws a line for each group, sorts its table by keyboard, and opens examples', () => visit('{ } | rate() by (resource.service.name)', async (page) => {
  await chart(page).waitFor();
  expect(await chart(page).getAttribute('aria-label')).toMatch(/web: .*cart: /);
  expect(await names(page)).toEqual(['web', 'cart']);
  const mean = page.getByRole('columnheader', { name: 'Mean' });
  expect(await mean.getAttribute('aria-sort')).toBe('descending');
  await mean.getByRole('button').focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => names(page)).toEqual(['cart', 'web']);
  expect(await mean.getAttribute('aria-sort')).toBe('ascending');
  // The examples in the chart lead to the same pages as those in the table.
  expect(await page.locator('[data-chart] a').count()).toBeGreaterThan(1);
  const example = table(page).getByRole('row', { name: /web/ }).getByRole('link');
  await example.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid', { name: 'Spans' }).getByRole('row').first().waitFor();
  await page.goBack();
  await expect.poll(() => names(page)).toEqual(['web', 'cart']);
}));

test('writes durations, and limits the spans by facets and the form', () => visit('{ } | quantile_over_time(duration, .5, .9) by (span.route)', async (page) => {
  await expect.poll(async () => (await names(page)).sort()).toEqual(['/cart, p50', '/cart, p90', '/pay, p50', '/pay, p90']);
  await expect.poll(() => table(page).getByRole('row', { name: '/cart, p90' }).textContent()).toMatch(/(19|20)(\.\d+)?\u202fms/);
  await page.getByRole('region', { name: 'service', exact: true }).getByRole('button', { name: /cart/ }).first().click();
  await expect.poll(async () => (await names(page)).sort()).toEqual(['/cart, p50', '/cart, p90']);
  expect(new URL(page.url()).searchParams.get('q')).toBe('{ service = "cart" } | quantile_over_time(duration, .5, .9) by (span.route)');
  await page.getByRole('button', { name: 'service cart', exact: true }).waitFor();
}));

test('a drag over the lines limits the time range', () => visit('{ } | count_over_time()', async (page) => {
  const box = (await chart(page).boundingBox())!;
  expect(await page.getByRole('columnheader', { name: 'Sum' }).count()).toBe(1);
  await page.mouse.move(box.x + box.width * 0.4, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80, { steps: 3 });
  await page.mouse.up();
  await expect.poll(() => new URL(page.url()).searchParams.get('from') ?? '').toMatch(/^\d{4}-/);
  await chart(page).waitFor();
}));

test('a mistake is marked where it is', () => visit('{ } | rate() by (bad)', async (page) => {
  await page.getByRole('alert').getByText(/^Column \d+: /).waitFor();
  expect(await page.locator('[data-problem]').allTextContents()).toEqual(['bad']);
  await page.getByRole('heading', { name: 'Examples' }).waitFor();
  await page.getByRole('combobox', { name: 'Search', exact: true }).fill('{ } | rate() by (name)');
  await page.keyboard.press('Enter');
  await expect.poll(() => names(page)).toEqual(['GET /']);
}));

test('compares spans, and calculates with series', () => visit('{ } | compare({ service = "cart" })', async (page) => {
  await table(page).getByRole('row', { name: 'service.name = cart 100 % 0 % +100 %' }).waitFor();
  expect(await page.getByRole('columnheader').allTextContents()).toEqual(['Name', 'Selection', 'Others', 'Difference']);
  await page.getByRole('combobox', { name: 'Search', exact: true }).fill('({ } | count_over_time()) / ({ service = "cart" } | count_over_time())');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await names(page)).length).toBe(1);
}));

test('a search is copied for Grafana', () => visit('{ service = "web" && errorGroup = "0000000000000001" } | rate()', async (page) => {
  await page.getByRole('button', { name: 'Saved and recent searches' }).click();
  await page.getByRole('button', { name: 'Copy as TraceQL' }).click();
  await page.getByText('Copied, but TraceQL does not have errorGroup').first().waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('{ resource.service.name = "web" && errorGroup = "0000000000000001" } | rate()');
}, { permissions: ['clipboard-read', 'clipboard-write'] }));

test('a renamed attribute is copied with all its names', () => visit('{ .http.method = "GET" && span.route = "/pay" } | rate() by (http.method)', async (page) => {
  await page.getByRole('button', { name: 'Saved and recent searches' }).click();
  await page.getByRole('button', { name: 'Copy as TraceQL' }).click();
  await page.getByText('TraceQL copied').first().waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('{ (.http.request.method = "GET" || .http.method = "GET") && span.route = "/pay" } | rate() by (.http.request.method, .http.method)');
}, { permissions: ['clipboard-read', 'clipboard-write'] }));

test('is usable on a small screen, and accessible', () => visit('{ } | rate() by (resource.service.name)', async (page) => {
  await chart(page).waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(small.width);
  expect(await page.getByRole('columnheader', { name: 'Minimum' }).isVisible()).toBe(false);
  expect(await check(page, 'series')).toEqual({ grave: [], minor: [] });
}, { viewport: small }));
