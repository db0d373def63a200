// The views of a trace beside its timeline, links to other systems, and searches by example: by keyboard.

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { choose, connect, newPage, pointAt } from './browser.ts';
import { allInOne, Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;
const trace = traceID();
const [slow, fast] = [spanID(), spanID()];
const hostile = `javascript:alert(1)//"><img src=x onerror=alert(2)>'\r\n@evil.example`;

const templates = `links: [loki: "https://grafana.example", {victorialogs: "https://lines.example", name: Lines}], link_templates: [
    {name: Logs, url: "https://logs.example/?trace={traceId}&span={spanId}"},
    {name: Order, on: attribute, key: order.id, url: "https://shop.example/orders/{attribute.order.id}#top"},
    {name: Tenant, url: "https://shop.example/tenants/{attribute.tenant}"},
    {name: Dashboard, on: trace, url: "https://dash.example/d?from={start}&to={end}&service={service}"},
    {name: Open in Grafana, on: search, url: "https://grafana.example/explore?from={start}&to={end}&query={query:json}"}]`;

beforeAll(async () => {
  const config = allInOne.replace('query: {storage: disk,', `query: {storage: disk, ${templates},`);
  [program, browser] = await Promise.all([Program.start(config), connect()]);
  url = await program.url();
  await sendSpans(program, checkout(Date.now() - 60_000));
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

/** A checkout with two payments at the same time, one of which fails. */
function checkout(start: number): TestSpan[] {
  const root = spanID();
  return [
    { traceID: trace, spanID: root, service: 'shop', name: 'POST /checkout', kind: 'server', start, duration: 1000, events: [{ name: 'cart.loaded', time: start + 5, attributes: { items: 3 } }] },
    {
      traceID: trace, spanID: slow, parentID: root, service: 'payment', name: 'Charge', kind: 'server', start: start + 100, duration: 800, error: 'declined', attributes: { region: 'eu', 'order.id': hostile },
      events: [{ name: 'exception', time: start + 880, attributes: { 'exception.type': 'Declined', 'exception.message': 'card declined' } }],
    },
    { traceID: trace, spanID: fast, parentID: root, service: 'payment', name: 'Charge', kind: 'server', start: start + 150, duration: 300, attributes: { region: 'us' } },
  ];
}

const details = (page: Page) => page.getByRole('complementary', { name: 'Span details' });
const title = (page: Page) => details(page).getByRole('heading', { level: 2 });
const parameter = (page: Page, name: string): string | null => new URL(page.url()).searchParams.get(name);

async function openTab(query: string): Promise<{ page: Page; problems: string[] }> {
  const opened = await newPage(browser);
  await opened.page.goto(`${url}/trace/${trace}${query}`);
  await opened.page.getByRole('tab', { name: 'Timeline' }).waitFor();
  return opened;
}

/** The row with the cursor. */
async function cursor(page: Page): Promise<string> {
  const id = await page.locator('#spans').getAttribute('aria-activedescendant');
  return id ? (await page.locator('#' + id).innerText()).replace(/\s+/g, ' ') : '';
}

test('tabs change by keys and keep the span and its details', async () => {
  const { page, problems } = await openTab('');
  await page.getByRole('treegrid', { name: 'Spans' }).focus();
  await page.keyboard.press('f');
  const flame = page.getByRole('application', { name: /Flame graph/ });
  await flame.locator('canvas[data-drawn]').waitFor();
  await page.getByText('3 spans, 3 lanes').waitFor();
  await flame.focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await title(page).getByText('Charge').waitFor();
  await expect.poll(() => parameter(page, 'span')).toBe(slow);
  await page.keyboard.press('z');
  await expect.poll(() => parameter(page, 'zoom')).not.toBeNull();
  await page.keyboard.press('3');
  await expect.poll(() => cursor(page)).toContain('Charge');
  await page.keyboard.press('6');
  await page.getByRole('listitem').filter({ hasText: 'payment' }).getByRole('button', { name: /^payment, ×2, .*1 error/ }).waitFor();
  await page.keyboard.press('1');
  await page.getByRole('row', { selected: true }).filter({ hasText: 'Charge' }).waitFor();
  await title(page).getByText('Charge').waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

test('the flame graph is pointed at, and has a table as its twin', async () => {
  const { page } = await openTab('?tab=flame');
  const canvas = page.locator('canvas[data-drawn]');
  await canvas.waitFor();
  const { width } = (await canvas.boundingBox())!;
  const box = await pointAt(canvas, width * 0.25, 50); // the third lane
  await page.getByRole('tooltip').getByText('30 % of the trace', { exact: false }).waitFor();
  await page.mouse.click(box.x + box.width * 0.25, box.y + 30);
  await title(page).getByText('Charge').waitFor();
  await expect.poll(() => parameter(page, 'span')).toBe(slow);
  await page.getByRole('button', { name: 'Table view' }).press('Enter');
  const rows = page.getByRole('grid', { name: 'Table of spans' }).getByRole('row');
  await expect.poll(() => rows.count()).toBe(4);
  await page.context().close();
});

test('the table sorts and groups by an attribute', async () => {
  const { page } = await openTab('?tab=table');
  const grid = page.getByRole('grid', { name: 'Table of spans' });
  await grid.getByRole('button', { name: 'Duration' }).press('Enter');
  await expect.poll(() => parameter(page, 'sort')).toBe('-duration');
  await page.keyboard.press('Enter');
  await expect.poll(() => grid.getByRole('columnheader', { name: 'Duration' }).getAttribute('aria-sort')).toBe('ascending');
  await expect.poll(() => grid.getByRole('row').nth(1).innerText()).toContain('300');
  await choose(page, 'Group by', 'span.region');
  const groups = page.getByRole('treegrid', { name: 'Table of spans' });
  await groups.getByText('eu').waitFor();
  await groups.focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await expect.poll(() => cursor(page)).toContain('300 ms');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => groups.getByRole('row').count()).toBe(4);
  await page.context().close();
});

test('statistics say what is not loaded and do not wait for it', async () => {
  const { page } = await openTab('?tab=statistics');
  const grid = page.getByRole('grid', { name: 'Statistics' });
  const row = async (i: number): Promise<string> => (await grid.getByRole('row').nth(i).innerText()).replace(/\s+/g, ' ');
  await expect.poll(() => row(1)).toMatch(/^payment Charge 2 1\.10 s 800 ms 300 ms 300 ms 800 ms 1/);
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => { answer = resolve; }); // also if the request comes later
  await page.route('**/values?*', async (route) => {
    await answered;
    await route.abort();
  });
  await choose(page, 'Group by', 'span.region');
  await page.getByText('span.region is being loaded').waitFor();
  await expect.poll(() => row(1)).toMatch(/…/);
  answer();
  await page.getByText('span.region is not loaded', { exact: false }).waitFor();
  await page.unroute('**/values?*');
  await page.getByRole('button', { name: 'Retry' }).press('Enter');
  await grid.getByText('eu').waitFor();
  await grid.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter'); // the slowest span of the group
  await title(page).getByText('Charge').waitFor();
  await page.context().close();
});

test('events are filtered, and lead to their spans', async () => {
  const { page } = await openTab('?tab=events');
  const grid = page.getByRole('grid', { name: 'Events' });
  await grid.getByText('Declined: card declined').waitFor();
  await expect.poll(() => grid.getByRole('row').nth(1).innerText()).toContain('cart.loaded');
  await page.keyboard.press('/');
  await page.keyboard.type('items=3');
  await page.getByText('1 of 2 events').waitFor();
  await page.getByRole('searchbox', { name: 'Find in trace' }).fill('');
  await page.getByRole('checkbox', { name: 'only exceptions' }).check();
  await expect.poll(() => grid.getByRole('row').count()).toBe(2);
  await grid.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await title(page).getByText('Charge').waitFor();
  await grid.getByRole('button', { name: 'Timeline' }).click();
  await page.getByRole('row', { selected: true }).filter({ hasText: 'Charge' }).waitFor();
  await page.context().close();
});

test('a search links to other systems', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(`${url}/search?q=${encodeURIComponent('{ service = "shop" }')}&from=2026-01-02T03:00:00Z&to=2026-01-02T04:00:00Z`);
  await page.getByRole('button', { name: 'Saved and recent searches' }).click();
  const link = page.getByRole('link', { name: 'Open in Grafana' });
  await link.waitFor();
  const values = new URL((await link.getAttribute('href'))!).searchParams;
  expect(JSON.parse(values.get('query')!)).toBe('{ resource.service.name = "shop" }');
  expect([values.get('from'), values.get('to')].map((time) => new Date(Number(time)).toISOString())).toEqual(['2026-01-02T03:00:00.000Z', '2026-01-02T04:00:00.000Z']);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('spans, traces and services link to logs with one line of configuration', async () => {
  const { page, problems } = await openTab(`?span=${slow}`);
  const query = async (within: Locator): Promise<string> => {
    const href = (await within.getByRole('link', { name: 'Loki' }).getAttribute('href'))!;
    return (JSON.parse(new URL(href).searchParams.get('panes')!) as { a: { queries: { expr: string }[] } }).a.queries[0].expr;
  };
  expect(await query(details(page))).toContain(`{service_name="payment"} | label_format in_line=\`{{ contains "${trace}" __line__ }}\``);
  await page.getByRole('button', { name: 'Links', exact: true }).click(); // more than two
  expect(await query(page.getByRole('dialog').or(page.locator('header')))).toContain('{service_name=~".+"}');
  await page.goto(`${url}/services/payment`);
  await page.getByRole('link', { name: 'Lines' }).waitFor();
  expect(await query(page.getByRole('main'))).toBe('{service_name="payment"}');
  await page.goto(`${url}/services/payment?from=2026-01-02T03:00:00Z&to=2026-01-02T04:00:00Z`); // without spans
  await expect.poll(() => page.getByRole('link', { name: 'Lines' }).getAttribute('href')).toContain('g0.range_input=3600s&g0.end_input=2026-01-02T04%3A00%3A00.000Z');
  expect(problems).toEqual([]);
  await page.context().close();
});

test('links of templates hold nothing that a hostile value adds', async () => {
  const { page, problems } = await openTab(`?span=${slow}`);
  const order = details(page).getByRole('link', { name: 'Order', exact: true });
  await order.waitFor();
  await page.getByRole('button', { name: 'Links', exact: true }).click(); // of the trace
  for (const [name, element] of Object.entries({ order, logs: details(page).getByRole('link', { name: 'Logs' }), dashboard: page.getByRole('link', { name: 'Dashboard' }) })) {
    await expect.poll(() => element.getAttribute('rel'), { message: name }).toBe('noopener noreferrer');
    await expect.poll(() => element.getAttribute('target'), { message: name }).toBe('_blank');
  }
  const href = new URL((await order.getAttribute('href'))!);
  expect([href.origin, href.hash]).toEqual(['https://shop.example', '#top']);
  expect(decodeURIComponent(href.pathname)).toBe('/orders/' + hostile);
  expect(href.pathname).toMatch(/^\/orders\/[\w.~%-]+$/);
  expect(await details(page).getByRole('link', { name: 'Tenant' }).count()).toBe(0); // the span has no tenant
  await expect.poll(() => details(page).getByRole('link', { name: 'Logs' }).getAttribute('href')).toBe(`https://logs.example/?trace=${trace}&span=${slow}`);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('attributes lead to groups and to spans like this one', async () => {
  const { page } = await openTab(`?span=${fast}`);
  const use = details(page).getByRole('button', { name: 'Use region in “Find more like this”' });
  await use.focus();
  await page.keyboard.press('Enter');
  await details(page).getByText('with span.region = us').waitFor();
  const like = details(page).getByRole('link', { name: 'Find more like this' });
  await expect.poll(async () => new URL((await like.getAttribute('href'))!, url).searchParams.get('q')).toBe('{ service = "payment" && name = "Charge" && span.region = "us" }');
  await details(page).getByRole('link', { name: 'Group the spans of this operation by region' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('tab', { name: /Groups/, selected: true }).waitFor();
  await expect.poll(() => [parameter(page, 'by'), parameter(page, 'q')]).toEqual(['span.region', '{ service = "payment" && name = "Charge" }']);
  await page.context().close();
});

test('chosen rows become a structural search', async () => {
  const { page } = await openTab('');
  const pattern = page.getByRole('region', { name: 'Pattern' });
  await page.getByRole('treegrid', { name: 'Spans' }).focus();
  await page.keyboard.press('Space');
  await pattern.getByText('1 row selected').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('m');
  await pattern.getByText('2 rows selected').waitFor();
  await page.getByRole('row').filter({ hasText: 'Charge' }).last().click({ modifiers: ['Control'] });
  await pattern.getByText('3 rows selected').waitFor();
  await page.keyboard.press('End');
  await page.keyboard.press(' ');
  await pattern.getByText('2 rows selected').waitFor();
  await page.getByRole('button', { name: 'Find this pattern' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('grid', { name: 'Traces' }).getByText('POST /checkout').first().waitFor();
  await expect.poll(() => parameter(page, 'q')).toBe('{ service = "shop" && name = "POST /checkout" } > { service = "payment" && name = "Charge" && error && duration > 750ms }');
  await page.context().close();
});

test('the tabs show traces of files, also without a connection', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(url + '/open');
  await page.waitForLoadState('networkidle');
  await page.context().setOffline(true);
  const answer = await (await fetch(`${url}/api/traces/${trace}`)).text();
  await page.setInputFiles('input[type=file]', { name: 'trace.json', mimeType: 'application/json', buffer: Buffer.from(answer) });
  await page.getByRole('treegrid', { name: 'Spans' }).focus();
  for (const [key, name] of [['2', 'application'], ['3', 'grid'], ['4', 'grid'], ['5', 'grid']] as const) {
    await page.keyboard.press(key);
    await page.locator(`#spans[role=${name}]`).waitFor();
  }
  await page.getByText('Declined: card declined').waitFor();
  await page.keyboard.press('4');
  await choose(page, 'Group by', 'span.region');
  await page.getByRole('grid', { name: 'Statistics' }).getByText('eu').waitFor();
  await page.getByRole('tab', { name: 'Graph', exact: true }).press('Enter');
  await page.getByRole('button', { name: /^payment: Charge, ×2/ }).waitFor();
  expect(problems.filter((p) => !p.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([]);
  await page.context().close();
});
