// Traces of files: read in the browser, on the same page as traces of the server.

import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

const captured = (name: string): string => fileURLToPath(new URL(`../../../test/e2e/query/testdata/real-traces/${name}.json.gz`, import.meta.url));

async function openPage(): Promise<{ page: Page; problems: string[] }> {
  const opened = await newPage(browser);
  await opened.page.goto(url + '/open');
  await opened.page.getByRole('button', { name: 'Choose files' }).waitFor();
  return opened;
}

test('files are read without the server: list, trace, details, find', async () => {
  const { page, problems } = await openPage();
  await page.waitForLoadState('networkidle');
  await page.context().setOffline(true);
  await page.setInputFiles('input[type=file]', ['otlp-thoth-renovate-697-orphans', 'otlp-thoth-netcat-links'].map(captured));
  await page.getByRole('heading', { name: '4 traces with 705 spans in 2 files' }).waitFor();
  const rows = page.getByRole('grid', { name: 'Traces' }).locator('tbody').getByRole('row');
  await expect.poll(() => rows.count()).toBe(4);
  await rows.first().focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid').waitFor();
  await expect.poll(() => page.url()).toMatch(/\/open\/[0-9a-f]{32}$/);
  await expect.poll(() => page.getByRole('treegrid').getAttribute('aria-rowcount')).not.toBe('0');
  await page.getByText('36 spans', { exact: false }).first().waitFor();
  await page.getByRole('searchbox', { name: 'Find in trace' }).fill('git ls-remote');
  await page.getByText(/^\d+ of \d+$/).or(page.getByText(/^\d+$/)).first().waitFor();
  await page.goBack();
  expect(problems.filter((p) => !p.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([]);
  await page.context().close();
});

test('a file has the same trace as the server', async () => {
  const trace = traceID();
  const [root, child] = [spanID(), spanID()];
  const start = Date.now() - 5000;
  await sendSpans(program, [
    { traceID: trace, spanID: root, service: 'shop', name: 'GET /cart', kind: 'server', start, duration: 100 },
    { traceID: trace, spanID: child, parentID: root, service: 'shop', name: 'SELECT', kind: 'client', start: start + 10, duration: 60, attributes: { 'db.system': 'postgres', 'db.user': 'ann' } },
  ]);
  const { page } = await openPage();
  const heading = async (): Promise<string> => (await page.getByRole('heading', { level: 1 }).innerText()).replace(/\s+/g, ' ');
  const json = await (await fetch(`${url}/api/traces/${trace}`)).text();
  await page.setInputFiles('input[type=file]', { name: 'cart.json', mimeType: 'application/json', buffer: Buffer.from(json) });
  await page.getByRole('treegrid').waitFor();
  const ofFile = await heading();
  expect(ofFile).toContain('60 % waiting on postgres');
  await page.getByRole('row').filter({ hasText: 'SELECT' }).click();
  await page.getByText('db.user').first().waitFor();
  await page.goto(`${url}/trace/${trace}`);
  await page.getByRole('treegrid').waitFor();
  await expect.poll(() => heading()).toBe(ofFile);
  await page.context().close();
});

test('dropped and pasted traces, mistakes, and a reload', async () => {
  const { page } = await openPage();
  const text = JSON.stringify([{ traceId: 'aa', id: '1', name: 'get', timestamp: 1700000000000000, duration: 100, localEndpoint: { serviceName: 'web' } }]);
  await page.evaluate((json) => {
    const data = new DataTransfer();
    data.items.add(new File(['{"a": tru}'], 'bad.json'));
    data.items.add(new File([json.replace('"aa"', '"bb"'), '\n', json.replace('"aa"', '"cc"')], 'good.json'));
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  }, text);
  await page.getByText('bad.json: Line 1, column 7: this is not JSON, “tru}” is not allowed here.').waitFor();
  await expect.poll(() => page.getByRole('grid', { name: 'Traces' }).locator('tbody').getByRole('row').count()).toBe(2);
  await page.evaluate((json) => {
    const data = new DataTransfer();
    data.setData('text/plain', json);
    document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true }));
  }, text);
  await page.getByRole('treegrid').waitFor();
  await expect.poll(() => page.url()).toContain(`/open/${'aa'.padStart(32, '0')}`);
  await page.reload();
  await page.getByText('is not in an open file').waitFor();
  await page.context().close();
});
