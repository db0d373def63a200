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
  await page.getByText('32 failed spans of 1 kind: 1 new; most in web').waitFor();
  await page.getByText(/^new since .*\d\d:\d\d$/).waitFor();
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

/** An hour long ago: 12 errors at its beginning, and then more than are read. */
const hour = Math.floor((Date.now() - 20 * 3_600_000) / 60_000) * 60_000;
const bulk = { refused: 12, timeouts: 3200 };

function failure(type: string, start: number): TestSpan {
  return { traceID: traceID(), spanID: spanID(), service: 'bulk', name: 'call', kind: 'client', start, duration: 5, error: true, attributes: { 'error.type': type } };
}

test('all errors are counted, and the page says what is new since when', async () => {
  const timeouts = Array.from({ length: bulk.timeouts }, (_, i) => failure('LongTimeout', hour + 20 * 60_000 + i * 740));
  await sendSpans(program, [...Array.from({ length: bulk.refused }, (_, i) => failure('Refused', hour + 120_000 + i * 5000)), ...timeouts]);
  const iso = (ms: number): string => new Date(ms).toISOString();
  const clock = (ms: number): string => new Date(ms).toTimeString().slice(0, 5);
  await visit(`/errors?from=${iso(hour)}&to=${iso(hour + 3_600_000 - 1)}`, async (page) => {
    await page.getByRole('heading', { name: '3,212 failed spans of 2 kinds: 1 new; most in bulk' }).waitFor();
    const rows = page.getByRole('listitem').filter({ has: page.getByRole('button', { name: /^(LongTimeout|Refused)$/ }) });
    await expect.poll(() => rows.allTextContents()).toEqual([expect.stringMatching(new RegExp(`new since .*${clock(hour + 20 * 60_000)}.*3,200`)), expect.stringMatching(/Refused.*12/)]);
    expect(await page.locator('[data-unread]').count()).toBe(0);
    await page.getByText('Largest growth first').click();
    await expect.poll(() => rows.first().textContent()).toContain('LongTimeout');
    await page.getByRole('button', { name: 'Refused', exact: true }).click();
    await page.getByText('First seen').waitFor();
    const facts = page.locator('dl').first();
    await expect.poll(() => facts.textContent()).toContain(clock(hour + 120_000));
  });
});

test('what was not counted is hatched and said', async () => {
  const { page } = await newPage(browser);
  await page.route('**/api/ui/v1/errors?*', async (route) => {
    const answer = await route.fetch();
    const json = await answer.json() as { data: { share: number; complete: boolean } };
    Object.assign(json.data, { share: 0.25, complete: false });
    await route.fulfill({ response: answer, json });
  });
  await page.goto(url + '/errors');
  await page.getByText(/There are too many spans to count all: 25\.0.?% of them were examined/).waitFor();
  await page.getByText(/^≈ /).first().waitFor();
  await expect.poll(() => page.locator('[data-unread]').count()).toBeGreaterThan(0);
  await page.context().close();
});
