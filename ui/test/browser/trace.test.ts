// The trace page: rows, keys, URL, details, find, zoom, downloads, growing traces.

import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, download, newPage, pointAt } from './browser.ts';
import { allInOne, Program } from './program.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;
const withArchive = allInOne.replace('  disk:\n', '  disk:\n  disk/archive:\n').replace('storage: disk,', 'storage: disk, archive_storage: disk/archive,');
const trace = traceID();
const charge = spanID();

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(withArchive), connect()]);
  url = await program.url();
  await sendSpans(program, checkout(trace, charge, Date.now() - 10_000));
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

/** A checkout of 1 s: 200 ms in the cart with 25 calls of redis, 600 ms in payment, which fails. */
function checkout(id: string, failed: string, start: number): TestSpan[] {
  const [root, cart, payment] = [spanID(), spanID(), spanID()];
  const calls = Array.from({ length: 25 }, (_, i): TestSpan => ({
    traceID: id, spanID: spanID(), parentID: cart, service: 'cart', name: 'GET item', kind: 'client', start: start + 20 + 7 * i, duration: 2 + (i % 3), attributes: { 'peer.service': 'redis' },
  }));
  return [
    { traceID: id, spanID: root, service: 'shop', name: 'POST /checkout', kind: 'server', start, duration: 1000 },
    { traceID: id, spanID: cart, parentID: root, service: 'cart', name: 'GetCart', kind: 'server', start: start + 10, duration: 200 },
    ...calls,
    { traceID: id, spanID: payment, parentID: root, service: 'payment', name: 'Charge', kind: 'server', start: start + 250, duration: 700 },
    {
      traceID: id, spanID: failed, parentID: payment, service: 'payment', name: 'POST /v1/charges', kind: 'client', start: start + 300, duration: 600, error: 'card service timed out',
      attributes: { 'order.id': 'ord-42', 'db.query.text': 'SELECT a, b FROM t WHERE c = 1', 'payment.request': '{"amount":1299,"currency":"EUR"}', 'docs.url': 'https://example.com/x', bad: 'javascript:alert(1)' },
      events: [{ name: 'exception', time: start + 899, attributes: { 'exception.type': 'Timeout', 'exception.message': 'no answer within 600 ms', 'exception.stacktrace': 'Timeout: no answer within 600 ms\n    at charge (/app/charge.ts:1:2)\n    at run (/app/node_modules/x/i.js:3:4)' } }],
    },
  ];
}

const rows = (page: Page) => page.getByRole('row');
const tree = (page: Page) => page.getByRole('treegrid', { name: 'Spans' });
const details = (page: Page) => page.getByRole('complementary', { name: 'Span details' });
const count = async (page: Page): Promise<number> => Number(await tree(page).getAttribute('aria-rowcount'));

/** Text of the row with the cursor. */
async function cursor(page: Page): Promise<string> {
  const id = await tree(page).getAttribute('aria-activedescendant');
  return id ? (await page.locator('#' + id).innerText()).replace(/\s+/g, ' ') : '';
}

async function openTrace(query = '', id = trace): Promise<{ page: Page; problems: string[] }> {
  const opened = await newPage(browser, { acceptDownloads: true });
  await opened.page.goto(`${url}/trace/${id}${query}`);
  await rows(opened.page).first().waitFor();
  return opened;
}

test('the head says where the time goes, and a part limits the rows', async () => {
  const { page, problems } = await openTrace();
  const sentence = (await page.getByRole('heading', { level: 1 }).innerText()).replace(/\s+/g, ' ');
  expect(sentence).toMatch(/^1\.00 s: 70 % payment/);
  await page.getByText('1 error', { exact: true }).waitFor();
  await expect.poll(() => count(page)).toBe(5); // root, cart, group of 25, payment, charge
  await page.getByRole('button', { name: '70 % payment' }).click();
  await expect.poll(() => page.getByRole('button', { name: '70 % payment' }).getAttribute('aria-pressed')).toBe('true');
  await expect.poll(() => count(page)).toBe(3);
  await page.reload(); // the address has the part
  await page.getByRole('button', { name: '70 % payment', pressed: true }).waitFor();
  await expect.poll(() => count(page)).toBe(3);
  await page.locator('main').focus();
  await page.keyboard.press('Escape');
  await expect.poll(() => count(page)).toBe(5);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('keys move, fold, open and close', async () => {
  const { page } = await openTrace();
  await tree(page).focus();
  await expect.poll(() => cursor(page)).toContain('POST /checkout');
  await page.keyboard.press('j');
  await page.keyboard.press('ArrowDown');
  await expect.poll(() => cursor(page)).toMatch(/GET item ?×25 sum 74\.0 ms, p50 3\.00 ms, max 4\.00 ms/);
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => count(page)).toBe(30);
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('u');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => rows(page).nth(1).getAttribute('aria-expanded')).toBe('false');
  await expect.poll(() => count(page)).toBe(4);
  await page.keyboard.press('e');
  await expect.poll(() => cursor(page)).toContain('POST /v1/charges');
  await page.keyboard.press('Enter');
  await details(page).getByRole('heading', { name: 'POST /v1/charges' }).waitFor();
  await expect.poll(() => page.url()).toContain(`span=${charge}`);
  await page.keyboard.press('k');
  await details(page).getByRole('heading', { name: 'Charge', exact: true }).waitFor();
  await expect.poll(async () => (await details(page).boundingBox())!.x).toBe(1440 - 376);
  await expect.poll(() => tree(page).evaluate((e) => e.getBoundingClientRect().right)).toBe(1440 - 376); // beside the rows
  await page.keyboard.press('Escape');
  await expect.poll(() => details(page).count()).toBe(0);
  await page.keyboard.press('z');
  await expect.poll(() => page.url()).toContain('zoom=');
  await page.keyboard.press('0');
  await expect.poll(() => page.url()).not.toContain('zoom=');
  await page.keyboard.press('r');
  await expect.poll(() => count(page)).toBe(2);
  await page.goBack();
  await expect.poll(() => count(page)).toBe(4);
  await page.context().close();
});

test('a link to a span shows its details: exception first, formatted values, searches', async () => {
  const { page, problems } = await openTrace(`?span=${charge}`);
  const panel = details(page);
  await panel.getByText('order.id').waitFor();
  await expect.poll(() => page.locator('[aria-selected=true][role=row]').innerText()).toContain('POST /v1/charges');
  const text = (await panel.innerText()).replace(/\s+/g, ' ');
  expect(text).toContain('Timeout no answer within 600 ms at charge (/app/charge.ts:1:2)');
  await expect.poll(() => panel.getByRole('region', { name: 'payment.request' }).innerText()).toBe('{\n  "amount": 1299,\n  "currency": "EUR"\n}');
  await expect.poll(() => panel.getByRole('region', { name: 'db.query.text' }).innerText()).toBe('SELECT a, b\nFROM t\nWHERE c = 1');
  await expect.poll(() => panel.getByRole('link', { name: 'https://example.com/x' }).getAttribute('rel')).toContain('noopener');
  expect(await panel.getByRole('link', { name: 'javascript' }).count()).toBe(0);
  await panel.getByRole('searchbox', { name: 'Filter attributes' }).waitFor({ state: 'detached' });
  await panel.getByText('order.id').hover();
  await panel.getByRole('button', { name: 'Show order.id in the rows' }).click();
  await page.getByRole('row', { name: 'id=ord-42' }).waitFor();
  await expect.poll(() => page.url()).toContain('pins=order.id');
  await panel.getByRole('link', { name: 'Find spans with this order.id' }).click();
  await page.waitForURL(/\/search/);
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('{ span.order.id = "ord-42" }');
  await page.goBack();
  await panel.getByText('order.id').waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

test('find counts, visits and filters matches; the URL restores them', async () => {
  const { page } = await openTrace();
  await page.keyboard.press('/');
  await page.keyboard.type('payment');
  await page.keyboard.press('Enter'); // does not wait for what is found
  await page.getByRole('search').getByText('1 of 2', { exact: true }).waitFor();
  await expect.poll(() => cursor(page)).toContain('Charge');
  await page.getByText('only matching').click();
  await expect.poll(() => count(page)).toBe(3);
  await page.reload();
  await page.getByRole('search').getByText('2', { exact: true }).waitFor();
  await expect.poll(() => count(page)).toBe(3);
  await page.getByRole('searchbox', { name: 'Find in trace' }).press('Escape');
  await expect.poll(() => count(page)).toBe(5);
  await page.context().close();
});

test('a span is requested when the button is pressed on its row, and again if it was not opened', async () => {
  const { page } = await openTrace();
  let requests = 0;
  page.on('request', (r) => { if (r.url().includes('/spans?ids=')) requests++; });
  const row = rows(page).filter({ hasText: 'POST /v1/charges' });
  await pointAt(row, 100, 10);
  await page.mouse.down();
  await expect.poll(() => requests).toBe(1);
  await page.mouse.up();
  await details(page).getByText('ord-42').waitFor();
  expect(requests).toBe(1);
  await page.keyboard.press('Escape');
  await expect.poll(() => details(page).count()).toBe(0);

  const other = rows(page).filter({ hasText: 'GetCart' });
  await pointAt(other, 100, 10);
  await page.mouse.down();
  await expect.poll(() => requests).toBe(2);
  await row.hover({ position: { x: 100, y: 10 } });
  await page.mouse.up();
  await other.dispatchEvent('pointerdown', { pointerType: 'touch', button: 0, clientX: 400 });
  expect(requests).toBe(2);
  await page.evaluate(() => getSelection()!.removeAllRanges());
  await other.click();
  await details(page).getByRole('heading', { name: 'GetCart' }).waitFor();
  expect(requests).toBe(3);
  await page.context().close();
});

test('the axis zooms by a drag, the handles of the minimap by keys', async () => {
  const { page } = await openTrace();
  const axis = await pointAt(page.getByTitle('Drag to zoom').last(), 100, 10);
  await page.mouse.down();
  await page.mouse.move(axis.x + 300, axis.y + 10, { steps: 3 });
  await page.mouse.up();
  await expect.poll(() => Number(new URL(page.url()).searchParams.get('zoom')?.split(',')[0])).toBeCloseTo(100 / (axis.width - 22), 1);
  const end = page.getByRole('slider', { name: 'End of the visible time' });
  await end.press('End');
  await expect.poll(() => end.getAttribute('aria-valuenow')).toBe('100');
  await page.goBack();
  await expect.poll(() => page.url()).not.toContain('zoom=');
  await page.context().close();
});

test('the critical path and the minimum duration are switched, also by the URL', async () => {
  const { page } = await openTrace('?path=0');
  const path = page.getByRole('button', { name: 'Critical path' });
  await expect.poll(() => path.getAttribute('aria-pressed')).toBe('false');
  await tree(page).focus();
  await page.keyboard.press('c');
  await expect.poll(() => path.getAttribute('aria-pressed')).toBe('true');
  await expect.poll(() => page.url()).not.toContain('path=');
  await page.getByRole('button', { name: 'Any duration' }).click();
  await page.getByRole('menuitemradio', { name: 'At least 100 ms, 4 spans' }).click();
  await expect.poll(() => count(page)).toBe(4); // root, cart, payment, charge
  await expect.poll(() => page.url()).toContain('min=');
  await page.reload();
  await rows(page).first().waitFor();
  await expect.poll(() => count(page)).toBe(4);
  await page.context().close();
});

test('downloads are traces that the program reads', async () => {
  const { page } = await openTrace();
  for (const [item, member] of [['Download Jaeger JSON', 'data'], ['Download OTLP JSON', 'resourceSpans']]) {
    await page.getByRole('button', { name: 'Actions', exact: true }).click();
    const path = await download(page, program.folder, () => page.getByRole('menuitem', { name: item }).click());
    const answer = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown[]>;
    expect(answer[member].length, item).toBeGreaterThan(0);
  }
  await page.context().close();
});

test('a growing trace refreshes itself and keeps the selected span', async () => {
  const id = traceID();
  const [root, first] = [spanID(), spanID()];
  const start = Date.now() - 2000;
  await sendSpans(program, [{ traceID: id, spanID: first, parentID: root, service: 'worker', name: 'first', start: start + 100, duration: 50 }]);
  const { page } = await openTrace(`?span=${first}`, id);
  await page.getByText('still receiving').waitFor();
  await page.getByText('incomplete: 1 span lacks its parent').click();
  await page.getByRole('dialog').getByText('still receiving spans', { exact: false }).waitFor();
  await page.keyboard.press('Escape');
  await sendSpans(program, [{ traceID: id, spanID: root, service: 'worker', name: 'job', start, duration: 1900, kind: 'consumer' }]);
  await page.getByRole('row').filter({ hasText: 'job' }).waitFor();
  await expect.poll(() => page.locator('[aria-selected=true][role=row]').innerText()).toContain('first');
  expect(await page.getByText('incomplete').count()).toBe(0);
  await page.context().close();
});

test('embed mode hides what its options say, and a missing trace explains itself', async () => {
  const { page } = await openTrace('?uiEmbed=v0&uiTimelineHideMinimap=1&uiTimelineCollapseTitle=1');
  expect(await page.getByRole('navigation').count()).toBe(0);
  expect(await page.getByRole('region', { name: 'Whole trace' }).count()).toBe(0);
  expect(await page.getByRole('heading', { level: 1 }).count()).toBe(0);
  const late = traceID();
  await page.goto(`${url}/trace/${late}`);
  await page.getByRole('heading', { name: `Trace ${late} not found` }).waitFor();
  await page.getByText('Looking for late spans').waitFor();
  await sendSpans(program, [{ traceID: late, spanID: spanID(), service: 'late', name: 'arrived', start: Date.now() - 10, duration: 5 }]);
  await page.getByRole('row').filter({ hasText: 'arrived' }).waitFor();
  await page.context().close();
});

test('links are followed both ways', async () => {
  const [a, b, start] = [traceID(), traceID(), Date.now() - 5000];
  const target: TestSpan = { traceID: a, spanID: spanID(), service: 'one', name: 'publish', start, duration: 10 };
  const source: TestSpan = { traceID: b, spanID: spanID(), service: 'two', name: 'consume', start: start + 20, duration: 10, links: [{ traceID: a, spanID: target.spanID }] };
  const inner: TestSpan = { traceID: b, spanID: spanID(), parentID: source.spanID, service: 'two', name: 'commit', start: start + 22, duration: 1, links: [{ traceID: b, spanID: source.spanID }] };
  await sendSpans(program, [target, source, inner]);
  const { page } = await openTrace(`?span=${source.spanID}`, b);
  await details(page).getByRole('tab', { name: /links/ }).click();
  await details(page).getByText(/commit/).waitFor();
  await details(page).locator(`a[href*="${a}"]`).first().click();
  await expect.poll(() => new URL(page.url()).pathname).toBe(`/trace/${a}`);
  await rows(page).getByText('publish').waitFor();
  await page.context().close();
});

test('a trace is archived', async () => {
  const { page } = await openTrace();
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: /Archive/ }).click();
  await page.getByText(/archived/i).first().waitFor();
  await page.context().close();
});

test('a span becomes the root, a missing parent is explained', async () => {
  const { page } = await openTrace(`?root=${charge}`);
  await expect.poll(() => count(page)).toBe(1);
  const id = traceID();
  await sendSpans(program, [{ traceID: id, spanID: spanID(), parentID: spanID(), service: 'lost', name: 'orphan', start: Date.now() - 60_000, duration: 5 }]);
  await page.goto(`${url}/trace/${id}`);
  await page.getByText(/missing|incomplete/i).first().waitFor();
  await page.context().close();
});

test('the panel names what sets a span apart from the usual, and claims nothing of others', async () => {
  const start = Date.now() - 600_000;
  const call = (i: number, zone: string, id = traceID()): TestSpan => ({
    traceID: id, spanID: spanID(), service: 'zones', name: 'work', kind: 'server', start: start - 1000 * i, duration: 5, attributes: { zone, 'order.id': `o-${i}` }, resource: { 'service.version': '1' },
  });
  const [odd, usual] = [call(-1, 'x'), call(-2, 'a')];
  await sendSpans(program, [odd, usual, ...Array.from({ length: 200 }, (_, i) => call(i, 'abc'[i % 3]))]);
  const apart = (page: Page) => details(page).getByRole('region', { name: 'Unusual attributes' });
  const { page, problems } = await openTrace(`?span=${odd.spanID}`, odd.traceID);
  await expect.poll(() => apart(page).getByRole('listitem').allInnerTexts(), { timeout: 10_000 }).toEqual([expect.stringMatching(/^zone = x\s+never$/)]);
  await apart(page).getByText('share of 200 calls in the preceding 24 hours').waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
  const other = await newPage(browser);
  const asked = other.page.waitForResponse((r) => r.url().includes('/api/ui/v1/facets?'));
  await other.page.goto(`${url}/trace/${usual.traceID}?span=${usual.spanID}`);
  await (await asked).finished();
  await details(other.page).getByText('order.id').waitFor();
  expect(await apart(other.page).count()).toBe(0);
  await other.page.context().close();
});

/** A request of 1 s whose message is processed for 2 s, five minutes later. */
function message(id: string, start: number): TestSpan[] {
  const [root, send] = [spanID(), spanID()];
  return [
    { traceID: id, spanID: root, service: 'shop', name: 'POST /order', kind: 'server', start, duration: 1000 },
    { traceID: id, spanID: send, parentID: root, service: 'shop', name: 'publish', kind: 'producer', start: start + 500, duration: 10 },
    { traceID: id, spanID: spanID(), parentID: send, service: 'mail', name: 'consume', kind: 'consumer', start: start + 300_000, duration: 2000 },
  ];
}

/** The sentence at the top of the page. */
async function sentenceOf(page: Page): Promise<string> {
  return (await page.getByRole('heading', { level: 1 }).innerText()).replace(/\s+/g, ' ').replaceAll(' ,', ',');
}

/** Width of the bar of a row in pixels. */
async function barWidth(page: Page, name: string): Promise<number> {
  const bar = page.getByRole('row').filter({ hasText: name }).getByRole('gridcell').nth(1).locator('span').first();
  return (await bar.boundingBox())!.width;
}

test('most of a trace is idle: the sentence says so, and the axes leave it out', async () => {
  const id = traceID();
  await sendSpans(program, message(id, Date.now() - 400_000));
  const { page, problems } = await openTrace('', id);
  expect(await sentenceOf(page)).toBe('5 m 02 s, 4 m 59 s of it idle. The other 3.00 s: 67 % mail, 33 % shop');
  await page.getByText(/^root 1\.00\ss$/).waitFor();
  const skip = page.getByRole('button', { name: 'Skip idle' });
  await expect.poll(() => skip.getAttribute('aria-pressed')).toBe('true');
  const left = page.getByText(/^4\sm\s59\ss idle$/);
  await left.waitFor();
  await expect.poll(async () => (await barWidth(page, 'consume')) / (await barWidth(page, 'POST /order'))).toBeCloseTo(2, 1);

  // The visible part is a part of the time of the trace, whether idle time is left out or not.
  await tree(page).focus();
  await page.keyboard.press('End');
  await page.keyboard.press('z');
  await expect.poll(() => page.url()).toContain('zoom=');
  const start = page.getByRole('slider', { name: 'Start of the visible time' });
  const time = await start.getAttribute('aria-valuetext');
  expect(time).toMatch(/^5\sm\s00\ss$/);
  await page.keyboard.press('i');
  await expect.poll(() => skip.getAttribute('aria-pressed')).toBe('false');
  await expect.poll(() => new URL(page.url()).searchParams.get('idle')).toBe('full');
  await expect.poll(() => start.getAttribute('aria-valuetext')).toBe(time);
  await page.keyboard.press('0');
  await expect.poll(() => page.url()).not.toContain('zoom=');
  await expect.poll(() => barWidth(page, 'POST /order')).toBeLessThan(6);
  expect(await left.count()).toBe(0);
  await page.reload(); // the address has the choice
  await expect.poll(() => skip.getAttribute('aria-pressed')).toBe('false');
  await page.locator('main').focus();
  await page.keyboard.press('f');
  await page.getByRole('application', { name: /Flame graph/ }).locator('canvas[data-drawn]').waitFor();
  expect(await left.count()).toBe(0);
  await skip.click();
  await left.waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

test('clock skew is corrected by the smallest shift with which children fit, and the page says so', async () => {
  const [id, root] = [traceID(), spanID()];
  const start = Date.now() - 60_000;
  const on = (host: string): Pick<TestSpan, 'resource'> => ({ resource: { 'host.name': host } });
  await sendSpans(program, [
    { traceID: id, spanID: root, service: 'web', name: 'call', kind: 'client', start, duration: 100, ...on('a') },
    { traceID: id, spanID: spanID(), parentID: root, service: 'api', name: 'serve', kind: 'server', start: start + 58, duration: 43.9, ...on('b') },
  ]);
  const { page } = await openTrace('', id);
  const skew = page.getByRole('switch', { name: /^clock skew corrected, api −1\.90\sms$/ });
  await skew.waitFor();
  expect(await sentenceOf(page)).toBe('100 ms: 56 % web, 44 % api');
  await skew.click();
  await page.getByRole('switch', { name: /^clock skew not corrected, api −1\.90\sms$/ }).waitFor();
  await expect.poll(() => page.getByRole('heading', { level: 1 }).innerText()).toMatch(/^102\sms/);
  expect(page.url()).toContain('skew=0');
  await page.context().close();
});
