import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { check } from './axe.ts';
import { connect, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

/** A request to `web`, which calls `stock` once. Every eighth is slow, because the call has a bad shard and is repeated. */
function request(i: number): TestSpan[] {
  const [id, root] = [traceID(), spanID()];
  const start = Date.now() - 50 * 60_000 + i * 7000;
  const slow = i % 8 === 0;
  const calls = slow ? 3 : 1;
  const each = slow ? 400 : 60 + (i % 5) * 8;
  const shard = slow ? 7 : i % 7;
  const spans: TestSpan[] = [{ traceID: id, spanID: root, service: 'web', name: 'GET /cart', kind: 'server', start, duration: calls * each + 20, error: slow ? 'too slow' : undefined, attributes: { tier: i % 3, ...(slow ? { 'error.type': 'Timeout' } : {}) } }];
  for (let n = 0; n < calls; n++) spans.push({ traceID: id, spanID: spanID(), parentID: root, service: 'stock', name: 'SELECT items', kind: 'client', start: start + 10 + n * each, duration: each, attributes: { 'db.shard': shard, 'db.table': 'items', 'payment.provider': slow ? 'nova' : 'north', 'peer.service': 'postgres' } });
  return spans;
}

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  await sendSpans(program, Array.from({ length: 400 }, (_, i) => request(i)).flat());
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

const paramOf = (page: Page, name: string): string => new URL(page.url()).searchParams.get(name) ?? '';
const attributes = (page: Page): Locator => page.getByRole('region', { name: 'Attributes' }).getByRole('listitem');
const sentence = (page: Page): Locator => page.getByRole('heading', { level: 2, name: /Selected traces/ });

/** Opens a page, and checks at the end that nothing failed in it. */
async function visit(address: string, use: (page: Page) => Promise<void>, options = {}): Promise<void> {
  const { page, problems } = await newPage(browser, options);
  await page.goto(address);
  await use(page);
  expect(problems).toEqual([]);
  await page.context().close();
}

test('explains the slowest traces by mouse', () => visit(url + '/search', async (page) => {
  await page.getByRole('button', { name: 'Explain slowest 5 %' }).click();
  await expect.poll(() => paramOf(page, 'tab')).toBe('explain');
  await sentence(page).waitFor();
  await expect.poll(() => sentence(page).innerText()).toMatch(/longer, 100\s% of it in stock SELECT items, waiting on postgres\. 100\s% have db\.shard = 7, others 0\s%\.$/u);
  // The input comes first, with all values of the same traces; then outcomes, and nothing that is the same for all calls.
  await expect.poll(() => attributes(page).count()).toBe(2);
  const [shard, failure] = [attributes(page).first(), attributes(page).last()];
  await expect.poll(() => shard.innerText()).toMatch(/db\.shard = 7\s+stock\s+in the same traces: payment\.provider = nova/);
  await expect.poll(() => failure.innerText()).toMatch(/error\.type = Timeout/);
  await shard.hover();
  const note = shard.getByText('payment.provider = nova');
  expect(await note.evaluate((e) => { const r = e.getBoundingClientRect(); return e.contains(document.elementFromPoint(r.x + 20, r.y + r.height / 2)); })).toBe(true);
  // All numbers are of one count. The slowest 5 % are 50 traces, because these take the same time.
  await page.getByText('read from 50 selected and 350 other traces').waitFor();
  await page.getByText('400 traces').waitFor();
  // Time and shape.
  await expect.poll(() => page.getByRole('row', { name: /^stock SELECT items, waiting on postgres .*▲ \+1\.\d\d\ss/u }).count()).toBe(1);
  await expect.poll(() => page.getByRole('row', { name: /^stock GET \/cart › SELECT items, waiting on postgres 3\.0 1\.0/ }).count()).toBe(1);
  // The icicle: a click chooses a frame, the other side has its own widths, the table has the same numbers.
  await page.getByRole('treeitem', { name: /^web GET \/cart/ }).click();
  await expect.poll(() => page.getByRole('treeitem', { selected: true }).getAttribute('aria-label')).toContain('web GET /cart');
  await page.getByRole('radiogroup', { name: 'Icicle shows' }).getByText('others').click();
  await expect.poll(() => page.getByRole('treeitem', { name: /^stock SELECT items, waiting on postgres, \d\d\.\d\sms$/u }).count()).toBe(1);
  await page.getByRole('button', { name: 'Table view' }).click();
  await expect.poll(() => page.getByRole('row', { name: /^stock SELECT items, waiting on postgres 1\.20\ss .*3 vs\. 1$/u }).count()).toBe(1);
  // A line leads to its traces.
  await shard.getByRole('link', { name: 'Show 50 traces' }).click();
  await expect.poll(() => paramOf(page, 'q')).toBe('{ trace.duration >= 1.22s } && { (span.db.shard = "7" || span.db.shard = 7) }');
  await expect.poll(() => page.getByRole('grid').locator('tbody').getByRole('row').count()).toBe(50);
  await page.goBack();
  await shard.getByRole('button', { name: 'Group by' }).click();
  await expect.poll(() => paramOf(page, 'by')).toBe('span.db.shard');
}));

test('explains and sums up traces by structure and stages', () => visit(`${url}/search?tab=tree&q=${encodeURIComponent('{ service = "web" } >> { service = "stock" } | count() > 2')}`, async (page) => {
  await page.getByText('All 50 traces').waitFor();
  await page.goto(`${url}/search?tab=explain&sel=errors&q=${encodeURIComponent('{ service = "web" } &> { service = "stock" }')}`);
  await page.getByText('read from 50 selected and 350 other traces').waitFor();
}));

test('sums up traces as one tree, by keyboard', () => visit(url + '/search?tab=tree', async (page) => {
  const rows = page.getByRole('table', { name: 'Traces as one tree' }).locator('tbody').getByRole('row');
  await page.getByText('All 400 traces').waitFor();
  await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringMatching(/web GET \/cart[^]*\b1\s+12\.5\s%/u), expect.stringMatching(/stock SELECT items[^]*\b1\.25\s+0\s[^]*\b400\sms/u)]);
  // One tab stop; the tree folds.
  await page.getByRole('button', { name: 'Fold web GET /cart' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => rows.count()).toBe(1);
  await page.keyboard.press('Enter');
  await expect.poll(() => rows.count()).toBe(2);
  // The same selection as Explain.
  await page.getByRole('tab', { name: 'Explain' }).click();
  await page.getByRole('button', { name: 'Explain errors' }).last().click();
  await page.getByRole('tab', { name: 'Tree' }).click();
  await page.getByText('All 50 selected traces').waitFor();
  await expect.poll(() => rows.last().innerText()).toMatch(/stock SELECT items[^]*\b3\s+0\s/u);
  // An example.
  await rows.first().getByRole('link', { name: /%/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid', { name: 'Spans' }).getByRole('row').first().waitFor();
  expect(paramOf(page, 'span')).not.toBe('');
}));

test('listed traces show their critical path by service', () => visit(url + '/search', async (page) => {
  const path = page.getByRole('grid', { name: 'Traces' }).getByRole('img', { name: /^Critical path: stock \d\d\s%, web \d+\s%$/u });
  await expect.poll(() => path.count(), { timeout: 10_000 }).toBe(50);
}));

test('explains errors by keyboard', () => visit(url + '/search?tab=explain', async (page) => {
  await page.getByText('Select what to explain').waitFor();
  await page.getByRole('button', { name: 'Explain errors' }).last().focus();
  await page.keyboard.press('Enter');
  await sentence(page).waitFor();
  await expect.poll(() => paramOf(page, 'sel')).toBe('errors');
  // One tab stop for each list: the name, then the actions of the line.
  await attributes(page).first().getByRole('button', { name: /db\.shard = 7/ }).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Exclude');
  await page.keyboard.press('Tab');
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).not.toContain('Show');
  // The icicle: arrows move between frames, Enter enlarges one, Escape shows all.
  const frame = (): Promise<string | null | undefined> => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
  await page.getByRole('treeitem').first().focus();
  await page.keyboard.press('ArrowDown');
  await expect.poll(() => frame()).toContain('stock SELECT items');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Show all' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Enlarge' }).waitFor();
  await page.keyboard.press('ArrowUp');
  await expect.poll(() => frame()).toContain('web GET /cart');
  expect((await check(page, 'explain')).grave).toEqual([]);
  // Another baseline: nothing is a day old.
  await page.getByRole('radio', { name: 'one day earlier' }).focus();
  await page.keyboard.press('Space');
  await page.getByText('0 other traces are too few: at least 30 are needed on each side.').waitFor();
  await page.getByRole('button', { name: 'Compare with all others' }).press('Enter');
  await sentence(page).waitFor();
}));

test('selects with the heatmap and x, and says what is missing', () => visit(url + '/search', async (page) => {
  await page.getByRole('application').focus();
  for (const key of ['ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowUp']) await page.keyboard.press(key);
  await page.getByRole('button', { name: 'Explain', exact: false }).filter({ hasText: 'x' }).waitFor();
  await page.keyboard.press('x');
  await page.getByText(/too few: at least 30 are needed on each side/).waitFor();
  await expect.poll(() => paramOf(page, 'tab')).toBe('explain');
}));

test('fits a small screen in the dark theme', () => visit(url + '/search?tab=explain&sel=errors&theme=dark', async (page) => {
  await sentence(page).waitFor();
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  expect((await check(page, 'explain')).grave).toEqual([]);
}, { viewport: small }));
