// Colors of services, the font, names that are too long, widths of columns, and the density of rows.

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

const services = Array.from({ length: 18 }, (_, i) => `shop-${i}`);
const long = ['com.example.warehouse.reservation.v1.ReservationService/ReserveStockOfOrder', 'com.example.warehouse.reservation.v1.ReservationService/ReleaseStockOfOrder'];
const [id, failed] = [traceID(), spanID()];

/** A root with a child in each service, of which one failed. */
function spans(): TestSpan[] {
  const [start, root] = [Date.now() - 60_000, spanID()];
  const child = (service: string, i: number): TestSpan => (
    { traceID: id, spanID: i === 5 ? failed : spanID(), parentID: root, service, name: long[i % 2], kind: 'server', start: start + 10 * i, duration: 8, error: i === 5 || undefined }
  );
  return [{ traceID: id, spanID: root, service: 'web', name: 'GET /', kind: 'server', start, duration: 300 }, ...services.map(child)];
}

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  await sendSpans(program, spans());
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

/** Opens a page, and checks at the end that nothing failed in it. */
async function visit(path: string, use: (page: Page) => Promise<void>, options = {}): Promise<void> {
  const { page, problems } = await newPage(browser, options);
  await page.goto(url + path);
  await use(page);
  expect(problems).toEqual([]);
  await page.context().close();
}

/** Services have a color each once the page knows all of them. */
const known = (page: Page): Promise<unknown> => page.waitForFunction(() => localStorage.getItem('tracing.services') !== null);
const row = (page: Page, text: string): Locator => page.getByRole('row').filter({ hasText: text }).first();
const widthOf = async (at: Locator): Promise<number> => Math.round((await at.boundingBox())!.width);
const heightOf = async (at: Locator): Promise<number> => Math.round((await at.boundingBox())!.height);

test('services have distinct colors, the same on each page', () => visit('/services', async (page) => {
  await known(page);
  const colors = (): Promise<string[]> => Promise.all(services.map((s) => page.getByTitle(s, { exact: true }).first().locator('[aria-hidden]').evaluate((e) => getComputedStyle(e).backgroundColor)));
  await page.getByTitle(services[17], { exact: true }).first().waitFor();
  const all = await colors();
  expect(new Set(all).size).toBe(services.length);
  await page.goto(`${url}/trace/${id}`);
  await row(page, services[17]).waitFor();
  const marks = await Promise.all(services.map((s) => row(page, `${s} `).locator('[style*="color"]').first().evaluate((e) => getComputedStyle(e).color)));
  expect(marks).toEqual(all);
}));

test('a failed span is light with a red edge', () => visit(`/trace/${id}`, async (page) => {
  const style = await row(page, `${services[5]} `).getByRole('gridcell').nth(1).locator('span').first().evaluate((e) => ({ edge: getComputedStyle(e).boxShadow, fill: getComputedStyle(e).backgroundColor }));
  expect(style.edge).toMatch(/^rgb\(194, 39, 27\)/);
  expect(style.fill).toBe('rgb(253, 236, 234)');
}));

test('the font comes with the page, and is kept', () => visit('/status', async (page) => {
  const href = await page.locator('link[rel=preload][as=font]').getAttribute('href');
  const answer = await page.request.get(new URL(href!, url + '/').href);
  expect(answer.headers()).toMatchObject({ 'content-type': 'font/woff2', 'cache-control': 'public, max-age=31536000, immutable' });
  await page.evaluate(() => document.fonts.load('500 13px Inter'));
  expect(await page.evaluate(() => [...document.fonts].map((f) => [f.family, f.display, f.status]))).toEqual([['Inter', 'optional', 'loaded']]);
}));

test('what differs in a name stays, and the whole name is read, shown and copied', () => visit(`/trace/${id}`, async (page) => {
  const name = row(page, services[0]).locator('[data-tail]');
  await name.waitFor();
  expect(await name.getAttribute('data-tail')).toBe('/ReserveStockOfOrder');
  await expect.poll(() => name.innerText()).toBe(long[0]);
  const drawn = await name.evaluate((e) => e.getBoundingClientRect().width - (e.firstElementChild as HTMLElement).scrollWidth);
  expect(drawn).toBeLessThan(0); // it is too long for its column
  await name.hover();
  await expect.poll(() => name.evaluate((e) => e.closest<HTMLElement>('[title]')?.title)).toContain(long[0]);
  const copied = await name.evaluate((e) => {
    getSelection()!.selectAllChildren(e);
    return getSelection()!.toString();
  });
  expect(copied.trim()).toBe(long[0]);
}));

test('columns keep the widths that the user gives them', () => visit('/search', async (page) => {
  const head = page.getByRole('columnheader', { name: 'Root' });
  await head.waitFor();
  const before = await widthOf(head);
  const edge = (await head.getByRole('separator').boundingBox())!;
  await page.mouse.move(edge.x + edge.width / 2, edge.y + 10);
  await page.mouse.down();
  await page.mouse.move(edge.x + edge.width / 2 + 60, edge.y + 10, { steps: 3 });
  await page.mouse.up();
  await expect.poll(() => widthOf(head)).toBe(before + 60);
  const duration = page.getByRole('columnheader', { name: 'Duration' });
  const wide = await widthOf(duration);
  await duration.getByRole('button').press('Shift+ArrowRight');
  await expect.poll(() => widthOf(duration)).toBe(wide + 16);
  await page.reload();
  await expect.poll(() => widthOf(page.getByRole('columnheader', { name: 'Root' }))).toBe(before + 60);
  // Without a button in the head, its edge has the focus.
  await page.getByRole('columnheader', { name: 'Root' }).getByRole('separator').press('Shift+ArrowLeft');
  await expect.poll(() => widthOf(page.getByRole('columnheader', { name: 'Root' }))).toBe(before + 44);
  await page.getByRole('columnheader', { name: 'Root' }).getByRole('separator').dblclick();
  await expect.poll(() => widthOf(page.getByRole('columnheader', { name: 'Root' }))).toBeLessThan(before + 44);
}));

test('rows have more space where the user wants it', () => visit(`/trace/${id}`, async (page) => {
  await expect.poll(() => heightOf(row(page, services[2]))).toBe(24);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('menuitemradio', { name: 'Comfortable rows' }).click();
  await expect.poll(() => heightOf(row(page, services[2]))).toBe(32);
  await page.goto(`${url}/trace/${id}?tab=table`);
  await expect.poll(() => heightOf(row(page, services[2]))).toBe(36);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('menuitemradio', { name: 'Compact rows' }).click();
  await expect.poll(() => heightOf(row(page, services[2]))).toBe(28);
}));

test('on a small screen the selected tab is in view, and a click does not move the tabs', () => visit('/search?tab=errors', async (page) => {
  const list = page.getByRole('tablist', { name: 'Results' });
  const errors = list.getByRole('tab', { name: 'Errors' });
  const end = async (at: Locator): Promise<number> => { const box = (await at.boundingBox())!; return box.x + box.width; };
  await expect.poll(async () => await end(errors) <= await end(list) + 1).toBe(true);
  const place = (): Promise<number> => list.evaluate((e) => e.scrollLeft);
  const before = await place();
  expect(before).toBeGreaterThan(0);
  await list.getByRole('tab', { name: 'Tree' }).click();
  await page.getByRole('tab', { name: 'Tree', selected: true }).waitFor();
  await page.getByRole('table', { name: 'Traces as one tree' }).waitFor();
  expect(await place()).toBe(before);
}, { viewport: small }));
