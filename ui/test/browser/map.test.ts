import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generate } from '../map/generate.ts';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendShop } from './shop.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  await sendShop(program, 300);
  await sendSpans(program, [{ traceID: traceID(), spanID: spanID(), service: 'lonely', name: 'work', kind: 'internal', start: Date.now() - 60_000, duration: 20 }]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

async function visit(path: string, use: (page: Page) => Promise<void>, services = 0): Promise<void> {
  const { page, problems } = await newPage(browser);
  if (services) await page.route('**/api/ui/v1/map?*', (route) => route.fulfill({ json: { data: generate(services, { end: Date.now() }), errors: null } }));
  await page.goto(url + path);
  await use(page);
  expect(problems).toEqual([]);
  await page.context().close();
}

const drawing = (page: Page) => page.locator('[data-state=ready]').getByRole('group', { name: /^Map of/ });
const edges = (page: Page) => page.getByRole('grid', { name: 'Edges' });
const node = (page: Page, name: string | RegExp) => drawing(page).getByRole('button', { name });
const parameter = (page: Page, name: string): string | null => new URL(page.url()).searchParams.get(name);

test('texts of nodes stay within their borders', () => visit('/dependencies', async (page) => {
  await drawing(page).waitFor();
  await node(page, /payment.*%/).waitFor();
  const outside = await drawing(page).evaluate((svg) => [...svg.querySelectorAll<SVGGElement>('[data-node]')].flatMap((g) => {
    const frame = g.querySelector<SVGRectElement>('rect')!.getBBox();
    return [...g.querySelectorAll('text')].filter((text) => text.getBBox().x + text.getBBox().width > frame.x + frame.width).map((text) => text.textContent);
  }));
  expect(outside).toEqual([]);
}));

test('says who calls payment and which caller sees errors, by keyboard', () => visit('/dependencies', async (page) => {
  await drawing(page).waitFor();
  await page.getByRole('heading', { level: 1, name: /edges fail/ }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('paym');
  await page.getByRole('option', { name: 'payment' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText(/^Called by checkout\. Errors are seen by checkout \([\d.]+\s?%\)\.$/).waitFor();
  await expect.poll(() => parameter(page, 'focus')).toBe('payment');

  // From the table to the failing traces of the edge.
  const row = edges(page).getByRole('row').filter({ hasText: 'checkout' }).filter({ hasText: 'payment' });
  await row.getByRole('button').focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => row.getAttribute('aria-selected')).toBe('true');
  await page.getByRole('link', { name: 'Failing traces' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => parameter(page, 'q')).toBe('{ service = "checkout" } > { service = "payment" && error }');
  await page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(1).waitFor();
}));

test('a failing node is selected by a click', () => visit('/dependencies', async (page) => {
  await node(page, /^payment .*⬢/).click();
  await expect.poll(() => parameter(page, 'pick')).toBe('payment');
}));

test('nodes are one tab stop, and arrow keys go to the nearest one', () => visit('/dependencies?focus=checkout&depth=1', async (page) => {
  await node(page, /^checkout /).focus();
  await page.keyboard.press('ArrowLeft');
  await node(page, /^gateway /).and(page.locator(':focus')).waitFor();
  await expect.poll(() => drawing(page).locator('[tabindex="0"]').count()).toBe(1);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'gateway' }).waitFor();
  await expect.poll(() => parameter(page, 'pick')).toBe('gateway');
  await page.keyboard.press('f');
  await node(page, /^frontend /).waitFor(); // calls gateway, and is two calls away from checkout
  await expect.poll(() => parameter(page, 'focus')).toBe('gateway');

  const scale = () => drawing(page).locator('> g').getAttribute('transform');
  const before = await scale();
  await page.keyboard.press('+');
  await expect.poll(scale).not.toBe(before);
  const zoomed = await scale();
  await page.keyboard.press('Shift+ArrowRight');
  await expect.poll(scale).not.toBe(zoomed);
  await page.keyboard.press('0');
  await expect.poll(scale).toBe(before);
}));

test('systems without spans have a type, and their traces are found', () => visit('/dependencies?pick=checkout,postgres', async (page) => {
  await page.getByRole('heading', { level: 1, name: 'checkout › postgres' }).waitFor();
  await node(page, /^postgres .*, sends no spans$/).waitFor();
  await edges(page).getByRole('row').filter({ hasText: 'database' }).first().waitFor();
  await page.getByRole('link', { name: 'Traces with this call' }).click();
  await page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(1).waitFor();
}));

test('the table is sorted by each column', () => visit('/dependencies', async (page) => {
  const first = () => edges(page).getByRole('row').nth(1).getByRole('gridcell').nth(1).textContent();
  await page.getByRole('button', { name: 'Calls' }).click();
  const most = Number(await first());
  await page.getByRole('button', { name: 'Calls' }).click();
  await expect.poll(async () => Number((await first())!.replace('<', ''))).toBeLessThan(most);
  await expect.poll(() => parameter(page, 'sort')).toBe('calls');
}));

test('services without calls are listed, and an empty map says what makes an edge', async () => {
  await visit('/dependencies', async (page) => {
    await page.getByText('1 service without calls').click();
    await page.getByText('lonely').waitFor();
  });
  await visit('/dependencies?from=now-3d&to=now-2d', async (page) => {
    await page.getByText('There are no calls between services').waitFor();
    await page.getByText(/client span with a server child/).waitFor();
    await page.getByRole('button', { name: 'Last 24 hours' }).click();
    await drawing(page).waitFor();
  });
});

test('1,000 services are put together, and found', () => visit('/dependencies', async (page) => {
  await drawing(page).waitFor();
  await page.getByText(/^1,000 services in \d+ groups and services$/).waitFor();
  expect(await drawing(page).getByRole('button').count()).toBeLessThanOrEqual(200);
  await edges(page).getByRole('row').nth(100).waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await edges(page).getByRole('row').nth(200).waitFor();

  // A group opens; a service is found and its surroundings are drawn.
  await node(page, /^shop \d+ services/).focus();
  await page.keyboard.press('o');
  await node(page, /^shop-0 /).waitFor();
  await page.getByRole('combobox', { name: 'Find a service' }).fill('media-3');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect.poll(() => parameter(page, 'depth')).toBe('2');
  await node(page, new RegExp(`^${parameter(page, 'focus')} `)).waitFor();

  // Weak edges can be hidden; the choice says how many.
  await page.getByRole('button', { name: /^edges from/ }).click();
  const item = page.getByRole('menuitemradio', { name: /^100 requests\/s: hides \d+ edges?$/ });
  const hidden = /hides (\d+)/.exec((await item.textContent())!)![1];
  await item.click();
  await page.getByRole('button', { name: new RegExp(`^edges from.*${hidden === '0' ? '' : `${hidden} hidden`}`) }).waitFor();
  await expect.poll(() => parameter(page, 'least')).toBe('100');
}, 1000));

test('services that the map leaves out are found', async () => {
  const { page, problems } = await newPage(browser);
  await page.route('**/api/ui/v1/map?*', async (route) => {
    const around = new URL(route.request().url()).searchParams.get('service');
    const answer = await route.fetch();
    const json = await answer.json() as { data: { nodes: { name: string[] } }; errors: unknown };
    if (!around) Object.assign(json, { data: generate(40, { end: Date.now() }), errors: [{ msg: '9 services with fewer calls are left out' }] });
    await route.fulfill({ json });
  });
  await page.goto(url + '/dependencies');
  await page.getByRole('combobox', { name: 'Find a service' }).fill('AYMEN');
  await page.getByRole('option', { name: 'payment' }).waitFor();
  await page.keyboard.press('Enter');
  await node(page, /^payment /).waitFor();
  await node(page, /^checkout /).waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});
