// Group-by tables and groups of errors, by keyboard.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

const stack = (file: string): string => `Traceback (most recent call last):\n  File "/app/${file}.py", line 7, in charge\n    call()\n`;

/** A request to `web`. Every fourth fails: those to /pay since half an hour, with provider `north`. */
function request(i: number): TestSpan {
  const start = Date.now() - 55 * 60_000 + i * 15_000;
  const route = i % 2 ? '/cart' : '/pay';
  const failed = i % 4 === 0 && i > 90;
  return {
    traceID: traceID(), spanID: spanID(), service: 'web', name: 'GET ' + route, kind: 'server', start, duration: i % 2 ? 20 : 200, error: failed || undefined,
    attributes: { 'http.route': route, provider: failed ? 'north' : ['east', 'west'][i % 3 ? 0 : 1] },
    events: failed ? [{ name: 'exception', time: start, attributes: { 'exception.type': 'Timeout', 'exception.message': `no answer within ${i} ms`, 'exception.stacktrace': stack('pay') } }] : [],
  };
}

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  // An error in the hour before: only what is new in this hour is called new.
  const before: TestSpan = { ...request(0), start: Date.now() - 100 * 60_000, error: true };
  await sendSpans(program, [before, ...Array.from({ length: 220 }, (_, i) => request(i))]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

async function visit(path: string, use: (page: Page) => Promise<void>): Promise<void> {
  const { page, problems } = await newPage(browser);
  page.setDefaultTimeout(10_000);
  await page.goto(url + path);
  await use(page);
  expect(problems).toEqual([]);
  await page.context().close();
}

const queryOf = (page: Page): string => new URL(page.url()).searchParams.get('q') ?? '';

test('groups by a chosen key, sorts, and limits the search, by keyboard', () => visit('/search?tab=groups', async (page) => {
  const table = page.getByRole('table', { name: /^Groups by/ });
  await table.getByRole('link', { name: 'web', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Second key' }).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.type('http.rou');
  await page.getByRole('option', { name: 'http.route' }).first().waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(() => new URL(page.url()).searchParams.get('by')).toBe('service,http.route');
  await table.getByRole('row', { name: /\/cart/ }).waitFor();
  await expect.poll(() => table.locator('tbody tr').count()).toBe(2);
  await page.getByRole('button', { name: 'p95' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => table.locator('tbody tr').first().textContent()).toContain('/pay');
  await page.keyboard.press('Tab'); // over the columns after p95, into the rows
  while (!(await page.evaluate(() => document.activeElement?.closest('[data-row]')))) await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Only web, /cart');
  await page.keyboard.press('Enter');
  await expect.poll(() => queryOf(page)).toBe('{ service = "web" && .http.route = "/cart" }');
  await expect.poll(() => table.locator('tbody tr').count()).toBe(1);
}));

test('a group of errors shows its stack and what sets it apart, and leads to its traces', () => visit('/errors', async (page) => {
  await page.getByText('1 kind of error, 1 of them new, most in web').waitFor();
  await page.getByRole('button', { name: 'Timeout' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Stack trace' }).getByText('line 7, in charge').waitFor();
  await page.getByText('charge (pay.py)').first().waitFor();
  await page.getByRole('link', { name: 'provider = north' }).waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('error')).not.toBeNull();
  await page.getByRole('link', { name: 'Traces with this error' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => queryOf(page)).toBe('{ service = "web" && status = error && event.exception.type = "Timeout" && event.exception.message =~ "no answer within .* ms" }');
  await expect.poll(() => page.getByRole('grid', { name: 'Traces' }).locator('tbody tr').count()).toBe(32);
  await page.getByRole('tab', { name: 'Spans' }).click();
  await page.getByRole('grid', { name: 'Spans' }).getByText('Timeout').first().waitFor();
  await page.getByRole('tab', { name: 'Errors' }).click();
  await page.getByRole('button', { name: 'Timeout', exact: true }).waitFor();
}));
