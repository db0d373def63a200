// What is usual on the trace page, and the page that compares two traces: of the server, with a typical one, and of files.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;
const [slow, normal, other, alone] = [traceID(), traceID(), traceID(), traceID()];
const start = Date.now() - 600_000;

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  const spans: TestSpan[] = [];
  for (let i = 0; i < 150; i++) spans.push(...order(traceID(), start - 1000 * i, { stock: 40 + (i % 10) }));
  await sendSpans(program, spans);
  await sendSpans(program, [
    ...order(normal, start, { stock: 44 }), ...order(slow, start, { stock: 44, payment: 400, attempts: 3, version: '2.14.0' }),
    { traceID: other, spanID: spanID(), service: 'mail', name: 'send', start, duration: 5 }, { traceID: other, spanID: spanID(), service: 'mail', name: 'send', start: start + 6, duration: 5 },
    { traceID: alone, spanID: spanID(), service: 'cron', name: 'nightly', start, duration: 5 },
  ]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

/** An order: stock, then attempts to pay. */
function order(id: string, at: number, o: { stock: number; payment?: number; attempts?: number; version?: string }): TestSpan[] {
  const { payment = 60, attempts = 1, version = '2.13.4' } = o;
  const [root, shop] = [spanID(), spanID()];
  const end = 20 + o.stock + attempts * payment;
  const base = { traceID: id, resource: { 'service.version': version } };
  return [
    { ...base, spanID: root, service: 'web', name: 'POST /order', kind: 'server', start: at, duration: end + 10 },
    { ...base, spanID: shop, parentID: root, service: 'shop', name: 'PlaceOrder', kind: 'server', start: at + 5, duration: end },
    { ...base, spanID: spanID(), parentID: shop, service: 'stock', name: 'Reserve', kind: 'server', start: at + 10, duration: o.stock },
    ...Array.from({ length: attempts }, (_, i): TestSpan => ({
      ...base, spanID: spanID(), parentID: shop, service: 'payment', name: 'Charge', kind: 'client', start: at + 10 + o.stock + i * payment, duration: payment, error: i < attempts - 1 ? 'timeout' : undefined,
    })),
  ];
}

const paths = (page: Page) => page.getByRole('grid', { name: 'Call paths' });
const rows = (page: Page) => paths(page).locator('[data-index]');
const texts = async (page: Page): Promise<string[]> => (await rows(page).allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());

async function open(path: string, size?: { width: number; height: number }): Promise<{ page: Page; problems: string[] }> {
  const opened = await newPage(browser);
  if (size) await opened.page.setViewportSize(size);
  await opened.page.goto(url + path);
  return opened;
}

test('every bar shows what is usual; only the cause has its percentile', async () => {
  const { page, problems } = await open(`/trace/${slow}`);
  const tree = page.getByRole('treegrid', { name: 'Spans' });
  await tree.getByText('▲ p99').first().waitFor();
  const marked = tree.getByRole('row').filter({ hasText: '▲ p99' });
  await expect.poll(async () => (await marked.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '))).toEqual(Array.from({ length: 3 }, () => expect.stringMatching(/Charge 400.ms ▲ p99/)));
  await page.getByText(/^p99\.\d of 152, usually/).waitFor();
  const bar = tree.getByRole('row').filter({ hasText: 'Reserve' }).getByRole('gridcell').nth(1);
  await bar.hover();
  await expect.poll(() => bar.getAttribute('title')).toMatch(/^p\d\d? of 152, usually [\d.]+.ms \(p50\) to [\d.]+.ms \(p95\), from /);
  await expect.poll(() => bar.evaluate((e) => getComputedStyle(e).backgroundSize.split(', ').length)).toBe(3);
  await tree.getByRole('row').filter({ hasText: 'Charge' }).first().click();
  await page.getByRole('complementary').getByText(/usually/).waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

test('a trace is compared with a typical one, by keyboard', async () => {
  const { page, problems } = await open(`/trace/${slow}`);
  await page.getByRole('link', { name: 'Compare with typical' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /^A takes ▲ 1\.1\d.s longer than a typical trace: \+1\.1\d.s in payment\. (Everything else differs by at most .*|Nothing else differs)\.$/ }).waitFor();
  await expect.poll(() => page.url()).toContain(`/trace/${slow}...baseline`);
  await page.getByText(/^typical: median of 15\d of 152$/).waitFor();
  await expect.poll(() => texts(page)).toEqual([
    expect.stringMatching(/^web POST \/order 1\.27.s .* ▲ \+1\.1\d.s 1 : 1$/), expect.stringMatching(/^shop PlaceOrder .* 1 : 1$/), expect.stringMatching(/^payment Charge fails in A 1\.20.s 60\.0.ms ▲ \+1\.14.s 3 : 1$/),
  ]);
  await page.getByText('1 row whose time differs', { exact: false }).waitFor();
  await page.getByText('Largest first').click();
  await page.waitForURL(/sort=largest/);
  await expect.poll(async () => (await texts(page))[0]).toContain('Charge');
  await page.getByRole('checkbox', { name: /^Only what changed/ }).press('Space');
  await page.waitForURL(/all=1/);
  await expect.poll(() => texts(page)).toHaveLength(4);
  await paths(page).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid', { name: 'Spans' }).waitFor();
  await expect.poll(() => new URL(page.url()).pathname).toBe(`/trace/${slow}`);
  await page.getByRole('complementary', { name: 'Span details' }).getByRole('heading', { name: 'Charge' }).waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

test('two traces are swapped; attributes that differ are listed', async () => {
  const { page, problems } = await open(`/trace/${slow}...${normal}`, small);
  await page.getByRole('heading', { level: 1, name: /^A takes ▲ .* longer than B/ }).waitFor();
  await page.getByRole('button', { name: 'Swap' }).click();
  await page.getByRole('heading', { level: 1, name: /^A takes ▼ .* less than B/ }).waitFor();
  await page.getByRole('tab', { name: 'Attributes' }).click();
  const row = page.getByRole('row', { name: /payment service\.version/ });
  await row.waitFor();
  await expect.poll(async () => (await row.getByRole('cell').allInnerTexts()).slice(0, 2)).toEqual(['2.13.4', '2.14.0']);
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('both timelines stand above each other on one axis, by keyboard', async () => {
  const { page, problems } = await open(`/trace/${slow}...${normal}?tab=timelines`);
  const [a, b] = ['A', 'B'].map((name) => page.getByRole('grid', { name: `Timeline of ${name}` }));
  await b.getByRole('row').first().waitFor();
  // The roots have one scale: the longer trace has the longer bar.
  const width = async (grid: typeof a): Promise<number> => (await grid.getByRole('row').first().locator('i').boundingBox())!.width;
  await expect.poll(async () => (await width(a)) > 1.5 * (await width(b))).toBe(true);
  await a.focus();
  await page.keyboard.press('ArrowDown');
  const active = (await a.getAttribute('aria-activedescendant'))!;
  expect(active).toBe('A-1');
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid', { name: 'Spans' }).waitFor();
  await expect.poll(() => new URL(page.url()).pathname).toBe(`/trace/${slow}`);
  expect(new URL(page.url()).searchParams.get('span')).toMatch(/^[0-9a-f]{16}$/);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('it says why there is nothing to compare', async () => {
  const { page } = await open(`/trace/${slow}...${slow}`);
  await page.getByText('Both are the same trace.').waitFor();
  for (const [path, text] of [
    [`/trace/${slow}...00000000000000000000000000000001`, /^Trace B, 00000000000000000000000000000001, was not found\.$/],
    ['/trace/00000000000000000000000000000001...baseline', /^Trace A, 0{31}1, was not found\.$/],
    [`/trace/${alone}...baseline`, /^No other trace starts with cron nightly\.$/],
    [`/trace/${slow}...${other}`, /^The traces start with different operations\./],
  ] as const) {
    await page.goto(url + path);
    await page.getByText(text).first().waitFor();
  }
  await expect.poll(() => texts(page)).toEqual(expect.arrayContaining([expect.stringMatching(/^mail send only in B/)]));
  await page.context().close();
});

test('traces are chosen in the results of a search, and in files, by keyboard', async () => {
  const { page, problems } = await open('/search?q=' + encodeURIComponent('{ service = "web" && trace.duration > 1s || service = "cron" }'));
  const results = page.getByRole('grid', { name: 'Traces' }).locator('tbody').getByRole('row');
  await results.nth(1).waitFor();
  await results.first().focus();
  await page.keyboard.press('Space');
  await page.getByRole('link', { name: 'Compare with typical' }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  await page.getByRole('link', { name: 'Compare', exact: true }).press('Enter');
  await paths(page).waitFor();
  await expect.poll(() => new URL(page.url()).pathname.split('/')[2].split('...').sort()).toEqual([slow, alone].sort());
  const file = await (await fetch(`${url}/api/traces/${slow}`)).text();
  const second = await (await fetch(`${url}/api/traces/${normal}`)).text();
  await page.goto(url + '/open');
  await page.getByRole('button', { name: 'Choose files' }).waitFor();
  await page.waitForLoadState('networkidle');
  await page.context().setOffline(true);
  await page.setInputFiles('input[type=file]', [file, second].map((text, i) => ({ name: `trace-${i}.json`, mimeType: 'application/json', buffer: Buffer.from(text) })));
  await results.nth(1).waitFor();
  await results.first().focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  await page.getByRole('link', { name: 'Compare', exact: true }).press('Enter');
  await page.getByRole('heading', { level: 1, name: /^A takes .* than B: .* in payment/ }).waitFor();
  await page.getByRole('tab', { name: 'Attributes' }).click();
  await page.getByRole('row', { name: /payment service\.version/ }).waitFor();
  expect(problems.filter((p) => !p.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([]);
  await page.context().close();
});
