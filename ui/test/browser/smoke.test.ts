import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

let program: Program;
let browser: Browser;

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

test('pages load under the Content-Security-Policy and without errors', async () => {
  await sendSpans(program, [
    { traceID: traceID(), spanID: spanID(), service: 'shop', name: 'GET /cart', kind: 'server', start: Date.now() - 1000, duration: 12 },
  ]);
  const url = await program.url();
  for (const path of ['/', '/search', '/open', '/status', '/nothing/here']) {
    const { page, problems } = await newPage(browser);
    const response = await page.goto(url + path);
    expect(response!.status(), path).toBe(200);
    expect(response!.headers()['content-security-policy'], path).toContain("script-src 'self';");
    await page.locator('main').waitFor();
    await page.getByRole('navigation').first().waitFor();
    expect(problems, path).toEqual([]);
    await page.context().close();
  }
});

test('on paper, a page is light and whole, without its bar', async () => {
  const url = await program.url();
  const { page, problems } = await newPage(browser, { colorScheme: 'dark', viewport: { width: 1000, height: 300 } });
  await page.goto(url + '/open');
  await page.getByRole('heading').first().waitFor();
  const measure = () => page.evaluate(() => ({
    scheme: getComputedStyle(document.documentElement).colorScheme, bar: document.querySelector('header')!.offsetHeight > 0, whole: document.documentElement.scrollHeight > innerHeight,
  }));
  expect(await measure()).toMatchObject({ bar: true, whole: false }); // the page scrolls within
  await page.emulateMedia({ media: 'print' });
  await expect.poll(measure).toEqual({ scheme: 'light', bar: false, whole: true });
  expect(problems).toEqual([]);
  await page.context().close();
});
