import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { choose, connect, newPage, pointAt, small } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

const traces = 120;

/** A request to `web`, which calls `checkout`. Every tenth fails and is slow. */
function request(i: number): TestSpan[] {
  const [id, root, child] = [traceID(), spanID(), spanID()];
  const start = Date.now() - 50 * 60_000 + i * 20_000;
  const failed = i % 10 === 0;
  const duration = failed ? 2000 : 40 + (i % 7) * 10;
  const route = i % 2 ? '/cart' : '/pay';
  return [
    { traceID: id, spanID: root, service: 'web', name: 'GET ' + route, kind: 'server', start, duration, attributes: { 'http.route': route } },
    { traceID: id, spanID: child, parentID: root, service: 'checkout', name: 'charge', kind: 'server', start: start + 1, duration: duration - 5, error: failed || undefined, attributes: { 'user id': 'user-' + (i % 3), shard: i % 4 } },
  ];
}

const importing = Math.floor(Date.now() / 60_000) * 60_000 - 401 * 86_400_000;

/** In the first minute 3 traces of 90 s, each with a child in the second minute; in the second minute 60 traces of 90 s. */
function imports(): TestSpan[] {
  return Array.from({ length: 63 }, (_, i) => {
    const [id, root, start] = [traceID(), spanID(), importing + (i % 60) * 100];
    const span = { traceID: id, spanID: root, service: 'web', name: 'import', start, duration: 90_000 };
    return i < 60 ? [{ ...span, start: start + 60_000 }] : [span, { ...span, spanID: spanID(), parentID: root, start: start + 60_000, duration: 5 }];
  }).flat();
}

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  const old = Date.now() - 400 * 86_400_000; // before every offered range
  await sendSpans(program, [...Array.from({ length: traces }, (_, i) => request(i)).flat(), ...imports(), { traceID: traceID(), spanID: spanID(), service: 'web', name: 'archive', start: old, duration: 5 }]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

const queryOf = (page: Page): string => new URL(page.url()).searchParams.get('q') ?? '';
const bar = (page: Page): Locator => page.getByRole('combobox', { name: 'Search', exact: true });
const rows = (page: Page): Locator => page.getByRole('grid').locator('tbody').getByRole('row');
const searchFor = (q: string): string => url + '/search?q=' + encodeURIComponent(q);

/** Opens a page, and checks at the end that nothing failed in it. */
async function visit(address: string, use: (page: Page) => Promise<void>, options = {}): Promise<void> {
  const { page, problems } = await newPage(browser, options);
  await page.goto(address);
  await use(page);
  expect(problems).toEqual([]);
  await page.context().close();
}

test('completes a search step by step, and shows it as chips', () => visit(url + '/search', async (page) => {
  await bar(page).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('serv');
  await page.getByRole('option', { name: 'service text', exact: true }).waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('option', { name: '= equal', exact: true }).waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('option', { name: 'web', exact: true }).waitFor();
  await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['checkout', 'web']);
  await page.keyboard.press('ArrowDown');
  await page.getByRole('option', { name: 'checkout', selected: true }).waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(() => bar(page).inputValue()).toContain('"checkout"');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'service checkout', exact: true }).waitFor();
  await expect.poll(() => queryOf(page)).toBe('{ service = "checkout" }');
  // Names and values are those of the spans that match the rest.
  await bar(page).fill('{ service = "web" && span.');
  await page.getByRole('option', { name: 'span.http.route attribute' }).waitFor();
  await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['span.http.routeattribute']);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+Space');
  await page.getByRole('option', { name: 'span.http.route attribute' }).waitFor();
  await bar(page).fill('{ service = "checkout" && ."user id" = ');
  await page.getByRole('option', { name: 'user-2' }).click();
  await expect.poll(() => bar(page).inputValue()).toBe('{ service = "checkout" && ."user id" = "user-2"');
}));

test('chips and text change the same search; back and forward restore it', () => visit(searchFor('{ service = "checkout" }'), async (page) => {
  await page.getByRole('button', { name: 'status any' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'error' }).click();
  await expect.poll(() => queryOf(page)).toBe('{ service = "checkout" && status = error }');
  await expect.poll(() => bar(page).inputValue()).toBe(queryOf(page));
  await page.getByRole('button', { name: 'duration any' }).click();
  await page.getByLabel('At least').fill('1s');
  await page.keyboard.press('Enter');
  await expect.poll(() => queryOf(page)).toBe('{ service = "checkout" && status = error && duration >= 1s }');
  await expect.poll(() => rows(page).count()).toBe(traces / 10);
  await page.goBack();
  await page.goBack();
  await expect.poll(() => bar(page).inputValue()).toBe('{ service = "checkout" }');
  await page.goForward();
  await expect.poll(() => bar(page).inputValue()).toBe('{ service = "checkout" && status = error }');
  await page.getByRole('button', { name: 'Remove service' }).click();
  await expect.poll(() => queryOf(page)).toBe('{ status = error }');
  await page.getByRole('radio', { name: 'Root span' }).check();
  await expect.poll(() => queryOf(page)).toBe('{ status = error && root }');
}));

test('plain text finds spans with any such value', () => visit(url + '/search', async (page) => {
  await bar(page).fill('USER-2');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await expect.poll(() => queryOf(page)).toBe('{ "USER-2" }');
  await page.getByRole('button', { name: 'text USER-2', exact: true }).waitFor();
  await expect.poll(() => rows(page).count()).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'text USER-2', exact: true }).click();
  await choose(page.getByRole('dialog', { name: 'Condition: text' }), 'Comparison', 'does not contain');
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await expect.poll(() => queryOf(page)).toBe('{ !"USER-2" }');
}));

test('Enter in a list takes the first name that contains the text', () => visit(url + '/search', async (page) => {
  await page.getByRole('button', { name: 'service any' }).click();
  await page.getByRole('combobox', { name: 'service', exact: true }).fill('HECK');
  await page.getByRole('option', { name: 'checkout' }).waitFor();
  await expect.poll(() => page.getByRole('option').count()).toBe(1);
  await page.keyboard.press('Enter');
  await expect.poll(() => queryOf(page)).toBe('{ service = "checkout" }');
}));

test('a text that the form cannot express is one chip', () => visit(searchFor('{ service = "web" } >> { error }'), async (page) => {
  await page.getByText('custom condition').waitFor();
  await expect.poll(() => rows(page).count()).toBe(traces / 10);
}));

test('underlines the token of an error', async () => {
  const { page } = await newPage(browser);
  await page.goto(searchFor('{ service = "web" && spam:foo = 1 }'));
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('Column 22: unknown scope "spam"');
  await expect.poll(() => bar(page).getAttribute('aria-invalid')).toBe('true');
  await expect.poll(() => page.locator('[data-problem]', { hasText: /^spam:foo$/ }).count()).toBe(1);
  await page.getByRole('button', { name: /trace\.duration > 2s/ }).click();
  await expect.poll(() => queryOf(page)).toBe('{ root && trace.duration > 2s }');
  await page.context().close();
});

test('keeps the results of the last search while a search is wrong', async () => {
  const { page } = await newPage(browser); // the refused request is an error on the console
  await page.goto(searchFor('{ service = "web" }'));
  await page.getByText('50 of 120, newest first', { exact: true }).waitFor();
  await page.getByRole('application').waitFor();
  await bar(page).fill('{ service = ');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('Column');
  await page.getByText('50 of 120, newest first, of the previous search', { exact: true }).waitFor();
  await expect.poll(() => rows(page).count()).toBe(50);
  await page.getByRole('application').waitFor();
  await expect.poll(() => page.getByText('Examples').count()).toBe(0);
  // What is requested now is of the search before.
  await page.getByRole('tab', { name: 'Spans' }).click();
  await expect.poll(() => rows(page).count()).toBeGreaterThan(0);
  await page.context().close();
});

test('facets are one tab stop, and the focused row of results is outlined', () => visit(searchFor('{ service = "checkout" }'), async (page) => {
  const facets = page.getByRole('complementary', { name: 'Facets' });
  await facets.getByRole('region', { name: 'shard' }).waitFor();
  await expect.poll(() => facets.locator('button:not([tabindex="-1"])').count()).toBe(1);
  await facets.locator('button[tabindex="0"]').focus();
  await page.keyboard.press('ArrowDown');
  await expect.poll(() => facets.locator('li button:focus').count()).toBe(1);
  await page.keyboard.press('j');
  await expect.poll(() => rows(page).first().evaluate((row) => row === document.activeElement && getComputedStyle(row).outlineStyle)).toBe('solid');
}));

test('the heatmap keeps its colors in forced colors', () => visit(searchFor('{ service = "checkout" }'), async (page) => {
  await page.getByText(`${traces} traces`).first().waitFor();
  const drawn = () => page.getByRole('application').locator('canvas').first().evaluate((c: HTMLCanvasElement) => {
    const { data } = c.getContext('2d')!.getImageData(0, 0, c.width, c.height);
    return new Set(Array.from({ length: data.length / 4 }, (_, i) => `${data[4 * i]},${data[4 * i + 1]},${data[4 * i + 2]}`)).size;
  });
  await expect.poll(drawn).toBeGreaterThan(2);
}, { forcedColors: 'active' }));

test('a search without a match offers all stored spans, however old', () => visit(searchFor('{ name = "archive" }'), async (page) => {
  await page.getByRole('button', { name: /^All stored spans\s*1 span$/ }).click();
  await expect.poll(() => rows(page).count()).toBe(1);
}));

test('start times of other days are shown in full', () => visit(`${searchFor('{ name = "import" }')}&from=${new Date(importing).toISOString()}&to=now`, async (page) => {
  const start = rows(page).first().locator('td').filter({ has: page.locator('time') });
  await start.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/).waitFor();
  expect(await start.evaluate((cell) => cell.scrollWidth <= cell.clientWidth)).toBe(true);
}));

test('the heatmap selects, filters and opens, by mouse and by keyboard', () => visit(searchFor('{ service = "checkout" }'), async (page) => {
  const map = page.getByRole('application');
  await page.getByText(`${traces} traces`).first().waitFor();
  await expect.poll(() => page.getByText('12 with errors').count()).toBeGreaterThan(0);
  const box = await pointAt(map, 2, 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, box.y + box.height / 2, { steps: 3 });
  await page.mouse.up();
  await page.getByText('12 selected').first().waitFor();
  await page.getByRole('button', { name: 'Filter', exact: true }).last().click();
  await expect.poll(() => queryOf(page)).toContain('trace.duration >= ');
  await expect.poll(() => rows(page).count()).toBe(12);
  await page.goBack();
  await page.getByText('12 selected').first().waitFor();
  await map.focus();
  await page.keyboard.press('Escape');
  await expect.poll(() => page.url()).not.toContain('sel=');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Shift+ArrowLeft');
  await expect.poll(() => page.url()).toContain('sel=');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Table view' }).click();
  await expect.poll(() => page.getByRole('region', { name: /as a table/ }).getByRole('row').count()).toBeGreaterThan(10);
  await page.getByRole('button', { name: 'Table view' }).click();
  await map.focus();
  await page.keyboard.press('ArrowLeft'); // the slowest cell of the newest minute
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toContain('/trace/');
}));

test('a box has as many traces in the list as in the heatmap', () => {
  const iso = (seconds: number): string => new Date(importing + seconds * 1000).toISOString();
  const box = `${importing + 60_000},${importing + 120_000},${80e9},${100e9}`;
  return visit(`${searchFor('{ name = "import" }')}&from=${iso(-60)}&to=${iso(540)}&sel=${box}`, async (page) => {
    await page.getByText('60 selected').first().waitFor();
    await page.getByText('50 of 60, newest first').first().waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(() => rows(page).count()).toBe(60);
  });
});

test('on a small screen, a box is filtered and zoomed', () => visit(searchFor('{ service = "checkout" }'), async (page) => {
  await page.getByText(`${traces} traces`).first().waitFor();
  await page.getByRole('application').focus();
  for (const key of ['ArrowLeft', 'Shift+ArrowLeft']) await page.keyboard.press(key);
  for (const name of ['Filter', 'Zoom', 'Clear the selection']) {
    const box = (await page.getByRole('region', { name: 'Heatmap of durations' }).getByRole('button', { name, exact: true }).boundingBox())!;
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(small.width);
  }
  await page.getByRole('button', { name: 'Zoom', exact: true }).click();
  await expect.poll(() => page.url()).toMatch(/from=.*to=/);
  expect(page.url()).not.toContain('sel=');
}, { viewport: small }));

test('the page says what durations are of', () => visit(searchFor('{ service = "web" || service = "checkout" }'), async (page) => {
  await page.getByText(`${traces} traces`).first().waitFor();
  await page.getByRole('radio', { name: 'Span duration' }).check();
  await page.getByText(`${2 * traces} spans`).first().waitFor();
  await expect.poll(() => page.url()).toContain('of=spans');
}));

test('facets include, exclude and count', () => visit(url + '/search', async (page) => {
  const facet = page.getByRole('complementary', { name: 'Facets' }).getByRole('region', { name: 'http.route', exact: true });
  await facet.getByRole('button', { name: '/pay', exact: true }).click();
  await expect.poll(() => queryOf(page)).toBe('{ span.http.route = "/pay" }');
  await expect.poll(async () => (await facet.locator('li').allTextContents()).join()).toBe('/pay60');
  await facet.locator('li').hover();
  await facet.getByRole('button', { name: 'Exclude span.http.route /pay' }).click();
  await expect.poll(() => queryOf(page)).toBe('{ !(span.http.route = "/pay") }');
}));

test('a facet marks and replaces a condition without scope', () => visit(searchFor('{ .http.route = "/pay" }'), async (page) => {
  const facet = page.getByRole('complementary', { name: 'Facets' }).getByRole('region', { name: 'http.route', exact: true });
  await facet.getByRole('button', { name: '/pay', exact: true, pressed: true }).hover();
  await facet.getByRole('button', { name: 'Exclude http.route /pay' }).click();
  await expect.poll(() => queryOf(page)).toBe('{ !(.http.route = "/pay") }');
}));

test('results: count, pages, columns, order, and the way to the span and back', () => visit(searchFor('{ service = "checkout" }'), async (page) => {
  await page.getByText('50 of 120, newest first').first().waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect.poll(() => rows(page).count()).toBe(100);
  await page.getByRole('button', { name: 'Columns' }).click();
  await page.getByRole('checkbox', { name: 'span.user id' }).check();
  await page.keyboard.press('Escape');
  await expect.poll(async () => (await rows(page).first().textContent())!.includes('user-')).toBe(true);
  await page.getByRole('columnheader', { name: 'Duration' }).getByRole('button').click();
  await page.getByText('50 of 120, slowest first').first().waitFor();
  await expect.poll(async () => (await rows(page).allTextContents()).slice(0, 13).map((t) => t.includes('2.00'))).toEqual([...Array<boolean>(12).fill(true), false]);
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('100 of 120, slowest first').first().waitFor();
  await page.locator('main').focus();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await expect.poll(() => page.evaluate(() => document.activeElement!.getAttribute('aria-rowindex'))).toBe('3');
  const shown = await rows(page).count();
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toMatch(/\/trace\/[0-9a-f]{32}\?.*span=[0-9a-f]{16}.*search=/);
  await page.goBack();
  await expect.poll(() => rows(page).count()).toBe(shown);
}));

test('the slowest of all traces are first, also those that are not among the newest', () => visit(searchFor('{ service = "checkout" }') + '&sort=-duration&limit=5', async (page) => {
  await page.getByText('50 of 120, slowest first').first().waitFor();
  await expect.poll(async () => (await rows(page).allTextContents()).filter((t) => t.includes('2.00')).length).toBe(12);
}));

test('a copied link keeps the search, its order and its time range', () => visit(searchFor('{ error }') + '&sort=-duration', async (page) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await expect.poll(() => rows(page).count()).toBe(12);
  await page.getByRole('button', { name: 'Copy link' }).click();
  await page.getByText('Link copied').first().waitFor();
  const copied = new URL(await page.evaluate(() => navigator.clipboard.readText()));
  const { q, sort, from, to } = Object.fromEntries(copied.searchParams);
  expect([q, sort, Date.parse(to) - Date.parse(from)]).toEqual(['{ error }', '-duration', 3600_000]);
  await page.goto(copied.href);
  await expect.poll(() => rows(page).count()).toBe(12);
}));

test('on a phone the order is chosen from a list', () => visit(searchFor('{ service = "checkout" }'), async (page) => {
  await choose(page, 'Order of the traces', 'Slowest first');
  await expect.poll(async () => (await rows(page).first().textContent())!.includes('2.00')).toBe(true);
}, { viewport: small }));

test('single spans have their own list', () => visit(searchFor('{ error }'), async (page) => {
  await page.getByRole('tab', { name: 'Spans' }).click();
  await expect.poll(() => rows(page).count()).toBe(12);
  await rows(page).first().click();
  await expect.poll(() => page.url()).toMatch(/\/trace\/.*span=/);
}));

test('an empty result offers ways out with their counts', () => visit(searchFor('{ service = "checkout" && name = "refund" }'), async (page) => {
  await page.getByText('No trace matches in this time range.').waitFor();
  await page.getByRole('button', { name: 'Without name = "refund" 120 spans' }).click();
  await expect.poll(() => queryOf(page)).toBe('{ service = "checkout" }');
}));

test("understands Jaeger's parameters", () => visit(url + '/search?service=checkout&operation=charge&minDuration=1s&limit=5&lookback=2h&tags=' + encodeURIComponent('{"shard":"2"}'), async (page) => {
  await expect.poll(() => bar(page).inputValue()).toBe('{ service = "checkout" && name = "charge" && (.shard = "2" || .shard = 2) && duration >= 1s }');
  await expect.poll(() => rows(page).count()).toBe(5);
}));

test('on a small screen, facets are a sheet', () => visit(url + '/search', async (page) => {
  await page.getByRole('button', { name: 'Facets' }).click();
  await page.getByRole('dialog', { name: 'Facets' }).getByRole('button', { name: '/cart', exact: true }).click();
  await expect.poll(() => queryOf(page)).toBe('{ span.http.route = "/cart" }');
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(small.width);
}, { viewport: small }));

test('a failed search keeps what was found, and can be repeated', async () => {
  const { page } = await newPage(browser);
  await page.goto(searchFor('{ service = "checkout" }'));
  await expect.poll(() => rows(page).count()).toBe(50);
  await page.route('**/api/ui/v1/**', (route) => route.abort());
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByText('Search: The server does not respond.').waitFor();
  await expect.poll(() => rows(page).count()).toBe(50);
  await page.unroute('**/api/ui/v1/**');
  await page.getByRole('alert').filter({ hasText: 'Search' }).getByRole('button', { name: 'Retry' }).click();
  await expect.poll(() => page.getByRole('alert').count()).toBe(0);
  await expect.poll(() => rows(page).count()).toBe(50);
  await page.context().close();
});
