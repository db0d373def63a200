import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendShop } from './shop.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

const span = (service: string, kind: TestSpan['kind']): TestSpan => ({ traceID: traceID(), spanID: spanID(), service, name: `${service} work`, kind, start: Date.now() - 60_000, duration: 20 });

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  await sendShop(program, 300);
  await sendSpans(program, [span('job', 'internal'), span('job', 'internal'), span('caller', 'client')]);
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

const row = (page: Page, grid: string, name: string | RegExp) => page.getByRole('grid', { name: grid }).getByRole('row').filter({ hasText: name });

test('shows the requests, operations and callers of a service, by keyboard', () => visit('/services', async (page) => {
  await row(page, 'Services', 'payment').getByRole('link', { name: 'payment' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'payment' }).waitFor();
  await page.getByRole('img', { name: /^Share of failed requests/ }).waitFor();
  await page.getByText('2.14.0').first().waitFor();
  await page.getByRole('heading', { name: 'Charge, all durations' }).waitFor();
  await row(page, 'Callers', 'checkout').waitFor();

  // A row marks its operation; the address keeps it.
  await page.getByRole('button', { name: 'Charge', exact: true }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'POST /v1/charges, all durations' }).waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('operation')).toBe('POST /v1/charges');
  await page.reload();
  await page.getByRole('heading', { name: 'POST /v1/charges, all durations' }).waitFor();

  // The caller of the caller.
  await row(page, 'Callers', 'checkout').getByRole('link', { name: 'checkout' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'checkout' }).waitFor();
  await row(page, 'Callers', 'gateway').waitFor();
  await row(page, 'Calls', 'postgres').waitFor();
  await row(page, 'Calls', 'payment').getByRole('link', { name: /%/ }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('{ service = "checkout" } > { service = "payment" && error }');
  await page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(1).waitFor();
}));

test('examples open their trace at the span', () => visit('/monitor?service=payment', async (page) => {
  const examples = page.getByRole('region', { name: 'Examples' });
  await examples.getByRole('link', { name: /failed payment failed after 3 attempts/ }).first().waitFor();
  await examples.getByText('Slow', { exact: true }).click();
  const slow = examples.getByRole('listitem').first().getByRole('link');
  await expect.poll(() => slow.getAttribute('href')).toMatch(/duration/);
  await slow.click();
  await page.getByRole('treegrid', { name: 'Spans' }).getByText('Charge').first().waitFor();
}));

test('the errors of a service are explained', () => visit('/services/payment', async (page) => {
  await page.getByRole('button', { name: 'Explain errors' }).click();
  await page.getByText('Spans with errors are selected').waitFor();
  await page.getByRole('tab', { name: 'Explain', selected: true }).waitFor();
}));

test('errors and instances of a service, of a kind of spans, by keyboard', () => visit('/services/payment', async (page) => {
  await page.getByRole('tab', { name: 'Summary', selected: true }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('tab', { name: /^Errors/, selected: true }).waitFor();
  await page.getByRole('button', { name: /^payment failed after/ }).waitFor();
  await page.getByRole('radio', { name: 'Outgoing calls' }).check();
  await page.getByRole('button', { name: 'UpstreamTimeout' }).waitFor();
  await expect.poll(() => page.getByRole('button', { name: /^payment failed after/ }).count()).toBe(0);
  await page.getByRole('tab', { name: /^Errors/ }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('tab', { name: /^Instances\s*6$/, selected: true }).waitFor();
  const rows = page.getByRole('table', { name: /^Groups by/ }).locator('tbody').getByRole('row');
  await expect.poll(() => rows.count()).toBe(6);
  await page.getByRole('radio', { name: 'host.name' }).check();
  await expect.poll(() => rows.first().textContent()).toMatch(/^node-\d/);
  await expect.poll(() => new URL(page.url()).search).toBe('?by=resource.host.name&kind=calls&tab=instances');
  await rows.first().getByRole('link').first().click();
  await page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(1).waitFor();
}));

test('instances that cannot be read are a failure, not a blank tab', () => visit('/services', async (page) => {
  await page.route('**/api/ui/v1/facets?*', (route) => route.fulfill({ status: 200, body: 'cut' }));
  await page.goto(url + '/services/payment?tab=instances');
  await page.getByText('Instances: The server\'s response cannot be read.').waitFor();
  await page.unroute('**/api/ui/v1/facets?*');
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('table', { name: /^Groups by/ }).waitFor();
}));

test.each([
  ['job', /only internal spans/, 'job work'],
  ['caller', /only client and producer spans/, 'caller work'],
  ['redis', /sends no spans. Other services name it/, 'Callers'],
  ['nothing', /no spans in this time range/, 'All services'],
])('says why there are no requests to %s', (name, why, also) => visit(`/services/${name}`, async (page) => {
  await page.getByText(why).waitFor();
  await page.getByText(also).first().waitFor();
}));

test('the list of services is ordered and filtered', () => visit('/services', async (page) => {
  const names = () => page.getByRole('grid', { name: 'Services' }).locator('tbody th').allTextContents();
  await page.getByRole('radio', { name: 'By name' }).check();
  await expect.poll(async () => (await names())[0]).toMatch(/caller/);
  await page.getByLabel('Filter services').fill('PAY');
  await expect.poll(async () => (await names()).length).toBe(1);
  await page.getByText('1 of').waitFor();
}));
