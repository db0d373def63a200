// The documentation that the query service serves: its search by keyboard, and axe-core in both themes.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { check } from './axe.ts';
import { connect, newPage, small } from './browser.ts';
import { allInOne, Program } from './program.ts';

let browser: Browser;
let program: Program;
let page: Page;
let problems: string[];
let root = '';

beforeAll(async () => {
  [browser, program] = await Promise.all([connect(), Program.start(allInOne, ['extensions::query::base_path=/base'])]);
  root = (await program.url()) + '/base/docs';
  ({ page, problems } = await newPage(browser));
});

afterAll(() => Promise.all([browser?.close(), program?.stop()]));

test('the search leads to a section, by keyboard', async () => {
  await page.goto(root);
  await page.getByRole('heading', { level: 1, name: 'Documentation' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('retent disk');
  const results = page.getByRole('listbox', { name: 'Results' });
  await results.getByRole('option').nth(1).waitFor();
  await page.keyboard.press('ArrowDown');
  const chosen = await results.getByRole('option', { selected: true }).getAttribute('data-url');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.href.endsWith(chosen!));
  const input = page.getByRole('combobox');
  await input.fill('nosuchword');
  await results.waitFor({ state: 'hidden' });
  await input.fill('retention');
  await results.getByRole('option').first().waitFor();
  await page.keyboard.press('Escape');
  await results.waitFor({ state: 'hidden' });
  const before = page.url();
  await page.keyboard.press('/');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter'); // nothing is selected
  await page.keyboard.type('disk');
  await results.getByRole('option').first().waitFor();
  await expect.poll(() => page.url()).toBe(before);
  expect(problems).toEqual([]);
});

test('the theme is that of the web UI', async () => {
  await page.goto(root + '/index.html');
  await page.getByRole('button', { name: 'Theme: system' }).click();
  await page.getByRole('button', { name: 'Theme: light' }).click();
  await page.getByRole('link', { name: 'Web UI', exact: true }).click();
  await page.waitForURL((url) => url.pathname === '/base/');
  await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
  await page.evaluate(() => localStorage.clear());
});

for (const name of ['index', 'first-five-minutes', 'metrics']) {
  test(`${name} is accessible`, async () => {
    for (const size of [undefined, small]) {
      if (size) await page.setViewportSize(size);
      await page.goto(`${root}/${name}.html`);
      expect((await check(page, name)).grave).toEqual([]);
      await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    }
  });
}

test('the help of the web UI leads to the documentation', async () => {
  await page.goto((await program.url()) + '/base/status');
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.keyboard.press('?');
  await expect.poll(() => page.getByRole('link', { name: 'Documentation' }).evaluate((a) => (a as HTMLAnchorElement).href)).toBe(root + '/');
});
