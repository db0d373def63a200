// Tasks of a new user: each from the overview to its answer, with the number of clicks. What failing requests have in
// common, which needs more of them, is in demo.test.ts.

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendShop, shopTraces, unlucky } from './shop.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

const day = 86_400_000;

let browser: Browser;
let program: Program;
let url: string;

beforeAll(async () => {
  [browser, program] = await Promise.all([connect(), Program.start(undefined, ['extensions::query::tail::quiet=100ms'])]);
  url = await program.url();
  await sendSpans(program, shopTraces(600, Date.now() - day, 9, 0).flat());
  await sendShop(program, 600, Date.now(), 2);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

type Click = (target: Locator) => Promise<void>;

/** Does a task with a number of clicks. */
function task(name: string, clicks: number, use: (page: Page, click: Click) => Promise<void>): void {
  test(name, async () => {
    const { page, problems } = await newPage(browser);
    page.setDefaultTimeout(30_000);
    await page.goto(url);
    let n = 0;
    await use(page, async (target) => { n++; await target.click(); });
    expect(n).toBe(clicks);
    expect(problems.filter((p) => !/status of 404/.test(p))).toEqual([]);
    await page.context().close();
  });
}

const rows = (page: Page): Locator => page.getByRole('grid', { name: 'Traces' }).locator('tbody').getByRole('row');
const service = (page: Page, name: string): Locator => page.getByRole('grid', { name: 'Services' }).getByRole('row').filter({ hasText: name });
const incident = (page: Page): Locator => page.getByRole('region', { name: 'Incidents' });
const sentence = (page: Page): Locator => page.getByRole('heading', { level: 1 });

/** Opens the jump box and enters a text. */
async function jump(page: Page, click: Click, text: string): Promise<void> {
  await click(page.getByRole('button', { name: /Trace ID, service or text/ }));
  await page.getByRole('combobox', { name: 'Trace ID, service or text' }).fill(text);
  await page.getByRole('option', { name: new RegExp(text) }).first().waitFor();
  await page.keyboard.press('Enter');
}

task('which service is broken', 0, async (page) => {
  await incident(page).getByText(/^payment fails .* of requests, usually .* version 2\.14\.0 appeared/).waitFor();
});

task('why is checkout slow', 2, async (page, click) => {
  await click(service(page, 'checkout').getByTitle('The slowest requests'));
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toMatch(/duration >= [\d.]{1,5}m?s/);
  await click(rows(page).first());
  await expect.poll(() => sentence(page).innerText()).toMatch(/% (payment|waiting on northpay)/);
});

task('an unusual trace', 3, async (page, click) => {
  await click(page.getByRole('link', { name: 'Explore', exact: true }));
  await click(page.getByRole('button', { name: 'Duration', exact: true }));
  await page.getByText(/^\d.*, slowest first$/).waitFor();
  await click(rows(page).first());
  await page.getByText(/^p\d\S* of .*, usually/).waitFor();
});

task('the traces of one user or order', 2, async (page, click) => {
  await jump(page, click, unlucky);
  await click(rows(page).first());
  await page.getByRole('treegrid', { name: 'Spans' }).getByText('found').first().waitFor();
});

task('errors as they arrive', 2, async (page, click) => {
  const send = (name: string): Promise<void> => sendSpans(program, [{ traceID: traceID(), spanID: spanID(), service: 'frontend', name, kind: 'server', start: Date.now() - 50, duration: 40, error: true }]);
  await send('GET /early');
  await click(page.getByRole('button', { name: 'Live' }));
  await click(page.getByRole('link', { name: /with errors/ }));
  await page.getByText('Live, showing all').first().waitFor();
  await send('GET /late');
  await rows(page).filter({ hasText: 'GET /late' }).waitFor();
});

task('who calls a service', 1, async (page, click) => {
  await incident(page).waitFor(); // moves the list below it
  await click(service(page, 'payment').getByRole('link', { name: 'payment' }));
  await page.getByRole('grid', { name: 'Callers' }).getByRole('row').filter({ hasText: 'checkout' }).waitFor();
});

task('why a trace is missing', 1, async (page, click) => {
  await jump(page, click, '0123456789abcdef0123456789abcdef');
  await page.getByRole('list', { name: 'What is known' }).getByText(/None was refused or dropped/).waitFor();
});

task('what differs since yesterday', 1, async (page, click) => {
  await click(page.getByRole('link', { name: 'Since yesterday' }));
  await page.getByRole('grid', { name: 'Two times compared' }).getByRole('row').filter({ hasText: 'payment' }).getByText('fails more').waitFor();
});

task('the logs of a span', 3, async (page, click) => {
  await click(incident(page).getByRole('link', { name: 'Newest failed trace' }));
  await click(page.getByRole('row').filter({ hasText: 'POST /v1/charges' }).first());
  const details = page.getByRole('complementary', { name: 'Span details' });
  await click(details.getByRole('tab', { name: 'Logs, links' }));
  await details.getByText('- loki: https://grafana.example.com').waitFor();
});
