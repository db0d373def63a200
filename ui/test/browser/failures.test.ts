// Slow, failing and restarting servers, behind a proxy that makes them so: what failed says so in its place, the rest of the page stays.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { Proxy, type Fault } from './proxy.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let browser: Browser;
let program: Program;
let proxy: Proxy;
const trace = traceID();
const root = spanID();

/** Spans of `shop`: one trace to open, and `traces` further ones. */
const traces = 80;
function shop(): TestSpan[] {
  const start = Date.now() - 60_000;
  const others = Array.from({ length: traces }, (_, i): TestSpan => (
    { traceID: traceID(), spanID: spanID(), service: 'shop', name: 'GET /cart', kind: 'server', start: start - i * 1000, duration: 10 + (i % 9), error: i % 20 === 0 || undefined }));
  return [
    { traceID: trace, spanID: root, service: 'shop', name: 'POST /pay', kind: 'server', start, duration: 100, attributes: { 'order.id': 'ord-42' } },
    { traceID: trace, spanID: spanID(), parentID: root, service: 'bank', name: 'charge', kind: 'server', start: start + 10, duration: 80, error: 'refused' },
    ...others,
  ];
}

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  await sendSpans(program, shop());
  proxy = await Proxy.start(await program.url());
});

afterEach(async () => {
  proxy.heal();
  for (const context of browser.contexts()) await context.close();
});

afterAll(async () => {
  await browser?.close();
  await proxy?.stop();
  await program?.stop();
});

async function open(path: string): Promise<Page> {
  const { page } = await newPage(browser);
  await page.goto(proxy.url + path);
  return page;
}

const alert = (page: Page, what: string) => page.getByRole('alert').filter({ hasText: what });
const rows = (page: Page) => page.getByRole('grid', { name: 'Traces' }).locator('tbody').getByRole('row');
const spanRows = (page: Page) => page.getByRole('treegrid', { name: 'Spans' }).getByRole('row');

const crash: Fault = { status: 500, headers: { 'content-type': 'application/json' }, body: '{"data":null,"errors":[{"code":500,"msg":"block 7 is damaged"}]}' };
const html: Fault = { status: 503, body: '<html><head><title>503</title></head><body>Service Unavailable</body></html>' };
const plain: Fault = { status: 502, body: '<h1>Bad Gateway</h1>' };
const busy: Fault = { status: 429, headers: { 'content-type': 'application/json', 'retry-after': '7' }, body: '{"errors":[{"code":429,"msg":"too many queries"}]}' };
const reasons = new Map<Fault, string>([
  [crash, 'block 7 is damaged'], [html, 'The server is not available (status 503).'], [plain, 'A proxy got no response from the server (status 502).'],
  [busy, 'too many queries. The server limits the number of concurrent requests. Try again in 7 s.'],
]);

test.each<[string, string, RegExp, string, Fault, string, string]>([
  ['services', '/', /v1\/services\?/, 'Services', crash, 'Ingestion healthy', 'bank'],
  ['errors', '/', /v1\/errors/, 'Errors', html, 'Services', 'refused'],
  ['changes', '/', /v1\/changes/, 'Changes', plain, 'refused', 'No new version'],
  ['the status', '/status', /v1\/status/, 'Status', busy, 'Overview', 'Receivers'],
  ['sampling strategies', '/sampling', /v1\/sampling/, 'Sampling strategies', crash, 'Root operation', 'No sampling extension is configured'],
  ['the heatmap', '/search', /v1\/heatmap/, 'Heatmap', busy, 'GET /cart', 'Trace duration'],
  ['facets', '/search', /v1\/compare/, 'Facets', html, 'GET /cart', 'Most useful first'],
  ['the search', '/search', /v1\/search/, 'Search', crash, 'Most useful first', 'GET /cart'],
  ['single spans', '/search?tab=spans', /v1\/heatmap.*of=spans/, 'Spans', plain, 'Most useful first', 'GET /cart'],
  ['a trace', `/trace/${trace}`, /v1\/outline/, 'The trace cannot be loaded', html, 'Overview', 'charge'],
  ['the details of a span', `/trace/${trace}?span=${root}`, /\/spans\?/, 'The attributes cannot be loaded', busy, 'charge', 'ord-42'],
  ['a service', '/services/shop', /v1\/service\?/, 'Service', crash, 'Overview', 'GET /cart'],
  ['the callers of a service', '/services/shop', /v1\/map/, 'Callers and calls', busy, 'GET /cart', 'Callers'],
  ['all services', '/services', /v1\/services\?/, 'Services', html, 'Overview', 'bank'],
  ['the map', '/dependencies', /v1\/map/, 'Map', plain, 'Overview', 'bank'],
])('a failure of %s is shown in its place', async (_name, path, request, what, fault, rest, repaired) => {
  proxy.break(request, fault);
  const page = await open(path);
  await alert(page, `${what}: ${reasons.get(fault)!}`).waitFor();
  await page.getByText(rest).first().waitFor();
  expect(await page.getByText(/<h/).count()).toBe(0); // pages of proxies are not shown
  proxy.heal();
  await alert(page, what).getByRole('button', { name: 'Retry' }).click();
  await alert(page, what).waitFor({ state: 'detached' });
  await page.getByRole('main').getByText(repaired).filter({ visible: true }).first().waitFor(); // a <title> in a drawing is never visible
});

test('a search in attributes that fails says so', async () => {
  proxy.break(/\/find\?/, crash);
  const page = await open(`/trace/${trace}?find=ord-42`);
  await alert(page, 'Attributes were not searched').waitFor();
  proxy.heal();
  await alert(page, 'Attributes').getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('search').getByText(/^1$/).waitFor();
  await expect.poll(() => page.getByRole('alert').count()).toBe(0);
});

test.each<['cut' | 'end']>([['cut'], ['end']])('a search whose answer is lost in the middle keeps what it found (%s)', async (after) => {
  let lose = () => {};
  proxy.break(/v1\/search/, { lines: 12, after, until: new Promise<void>((resolve) => { lose = resolve; }) });
  const page = await open('/search');
  await rows(page).first().waitFor();
  lose();
  await alert(page, 'Search: The server\'s response ended early.').waitFor();
  const found = await rows(page).count();
  expect(found).toBeGreaterThan(0);
  await page.getByText(`${found} of ${traces + 1}, newest first, not complete`, { exact: true }).waitFor();
  expect(await page.getByText('No more traces').count()).toBe(0);
  proxy.heal();
  await alert(page, 'Search').getByRole('button', { name: 'Retry' }).click();
  await expect.poll(() => rows(page).count()).toBe(50);
});

test('a trace whose answer is lost in the middle can be loaded again', async () => {
  proxy.break(/v1\/outline/, { after: 'cut' });
  const page = await open(`/trace/${trace}`);
  await alert(page, 'The trace cannot be loaded: The server\'s response ended early.').waitFor();
  proxy.heal();
  await page.getByRole('button', { name: 'Retry' }).click();
  await spanRows(page).first().waitFor();
});

test('a server that does not answer is given up', async () => {
  proxy.break(/v1\/(outline|services)/, { hang: true });
  for (const [path, what] of [['/', 'Services'], [`/trace/${trace}`, 'The trace cannot be loaded']]) {
    const { page } = await newPage(browser);
    await page.clock.install();
    await page.goto(proxy.url + path);
    await page.getByRole('progressbar', { name: 'Loading' }).waitFor();
    await expect.poll(() => proxy.seen.some((s) => s.state === 'open' && /outline|services\?/.test(s.path))).toBe(true);
    await page.clock.fastForward(121_000);
    await alert(page, `${what}: The server has not responded within 120 s.`).waitFor();
    await expect.poll(() => proxy.seen.some((s) => s.state === 'open' && /outline/.test(s.path))).toBe(false);
  }
});

test('a slow search shows its traces as they come', async () => {
  proxy.break(/v1\/search/, { slow: 60 });
  const page = await open('/search');
  await rows(page).first().waitFor();
  expect(await page.getByText('still reading').count()).toBe(1);
  expect(await page.getByRole('progressbar', { name: 'Searching' }).isVisible()).toBe(true);
  expect(await rows(page).count()).toBeLessThan(50);
  await expect.poll(() => rows(page).count(), { timeout: 15_000 }).toBe(50);
  await expect.poll(() => page.getByText('still reading').count()).toBe(0);
});

test('old data stays until new data is there', async () => {
  const page = await open('/search?q=' + encodeURIComponent('{ service = "shop" }'));
  await expect.poll(() => rows(page).count()).toBe(50);
  const facet = page.getByRole('complementary', { name: 'Facets' }).getByRole('button', { name: 'GET /cart', exact: true });
  await facet.waitFor();
  proxy.break(/v1\/(search|heatmap|compare)/, { hang: true });
  await facet.click();
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toContain('GET /cart');
  await page.getByRole('progressbar', { name: 'Searching' }).waitFor();
  expect(await rows(page).count()).toBe(50);
  expect(await facet.count()).toBe(1);
  await page.getByRole('application').waitFor(); // the heatmap
});

test('requests of a page that the user leaves are aborted', async () => {
  proxy.break(/v1\/(search|heatmap|compare|outline)/, { hang: true });
  const waiting = (): string[] => proxy.seen.filter((s) => s.state === 'open' && /v1\/(search|heatmap|compare|outline)/.test(s.path)).map((s) => s.path);
  const page = await open('/search');
  await expect.poll(() => waiting().length).toBe(3);
  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  await expect.poll(() => waiting().length).toBe(0);
  await page.goto(`${proxy.url}/trace/${trace}`);
  await expect.poll(() => waiting().length).toBe(1);
  await page.getByRole('link', { name: 'Explore', exact: true }).click();
  await expect.poll(() => waiting().filter((p) => p.includes('outline')).length).toBe(0);
  proxy.heal();
});

test('parts of the page that are not loaded say so', async () => {
  proxy.break(/assets\/explore-.*js/, { status: 404 });
  let page = await open('/search');
  await alert(page, 'This part of the page cannot be loaded.').waitFor();
  proxy.heal();
  await page.getByRole('button', { name: 'Reload' }).click();
  await rows(page).first().waitFor();

  proxy.break(/assets\/worker-/, { status: 404 });
  page = await open(`/trace/${trace}`);
  await alert(page, 'The worker that processes traces cannot be started.').waitFor();
  proxy.heal();
  await page.getByRole('button', { name: 'Retry' }).click();
  await spanRows(page).first().waitFor();

  proxy.break(/assets\/main-.*js/, { drop: true });
  page = await open('/search');
  await page.getByText('The page has not been loaded yet.').waitFor();
  proxy.heal();
  await page.reload();
  await rows(page).first().waitFor();
  expect(await page.getByText('has not been loaded').count()).toBe(0);
});

test('open pages recover when the server starts again', async () => {
  const overview = await open('/');
  const status = await open('/status');
  await overview.getByRole('link', { name: 'bank' }).first().waitFor();
  await status.getByRole('heading', { name: 'Receivers' }).waitFor();
  await program.stop();
  await overview.getByText('Ingestion: The server does not respond.').waitFor();
  await alert(status, 'Status (showing earlier data): The server does not respond.').waitFor();
  await alert(overview, 'Services (showing earlier data)').waitFor();
  expect(await overview.getByRole('link', { name: 'bank' }).count()).toBeGreaterThan(0);
  program = await Program.start();
  proxy.target = await program.url();
  await sendSpans(program, [{ traceID: traceID(), spanID: spanID(), service: 'revived', name: 'GET /', kind: 'server', start: Date.now() - 1000, duration: 5 }]);
  await overview.getByRole('link', { name: 'revived' }).first().waitFor();
  await expect.poll(() => overview.getByRole('alert').count(), { timeout: 10_000 }).toBe(0);
  await expect.poll(() => status.getByRole('alert').count()).toBe(0);
});
