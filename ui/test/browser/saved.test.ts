// Saved searches: named, opened, renamed, deleted with undo, and carried by links and files.

import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, download, newPage, small } from './browser.ts';
import { Program } from './program.ts';

let browser: Browser;
let program: Program;
let url: string;

beforeAll(async () => {
  browser = await connect();
  program = await Program.start();
  url = await program.url();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

const menu = (page: Page) => page.getByRole('button', { name: 'Saved and recent searches' });
const saved = (page: Page) => page.getByRole('list', { name: 'Saved searches' }).getByRole('listitem');
const search = '/search?q=%7B+error+%7D&from=now-6h&tab=spans';

async function saveAs(page: Page, name: string): Promise<void> {
  await menu(page).press('Enter');
  await page.getByLabel('Name of this search').waitFor();
  await page.keyboard.type(name);
  await page.keyboard.press('Enter');
  await saved(page).filter({ hasText: name }).waitFor();
}

test('by keyboard: save a search, open it from the menu and from the palette', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(url + search);
  await saveAs(page, 'Failed spans');
  await expect.poll(() => saved(page).textContent()).toContain('{ error }, last 6h, spans');
  await page.keyboard.press('Escape');
  await page.goto(url + '/search');
  await menu(page).press('Enter');
  await page.getByLabel('Name of this search').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toBe(url + search);
  await page.goto(url + '/status');
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('failed sp');
  await page.getByRole('option', { name: /Failed spans/ }).first().waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toBe(url + search);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('rename, delete and undo', async () => {
  const { page } = await newPage(browser, { viewport: small });
  await page.goto(url + search);
  await saveAs(page, 'One');
  await page.getByRole('button', { name: 'Rename One' }).click();
  await page.getByLabel('New name of One').fill('Two');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Delete Two' }).click();
  await saved(page).first().waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Undo' }).click();
  await menu(page).click();
  await expect.poll(() => saved(page).first().textContent()).toContain('Two');
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.context().close();
});

test('a link and a file carry the searches to another browser', async () => {
  const first = await newPage(browser, { permissions: ['clipboard-read', 'clipboard-write'] });
  await first.page.goto(url + search);
  await saveAs(first.page, 'Größte Fehler');
  await first.page.getByRole('button', { name: 'Copy as link' }).click();
  await first.page.getByText('Link to all saved searches copied').first().waitFor();
  const shared = await first.page.evaluate(() => navigator.clipboard.readText());
  const path = await download(first.page, program.folder, () => first.page.getByRole('button', { name: 'Download' }).click());
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual([{ name: 'Größte Fehler', url: search }]);
  const second = await newPage(browser);
  await second.page.goto(shared);
  await second.page.getByText('1 search imported').first().waitFor();
  await expect.poll(() => second.page.url()).toBe(url + '/search?from=now-6h');
  await menu(second.page).click();
  await expect.poll(() => saved(second.page).count()).toBe(1);
  await second.page.locator('input[type=file]').setInputFiles(path);
  await second.page.getByText('These searches are saved already').first().waitFor();
  expect([...first.problems, ...second.problems]).toEqual([]);
  await Promise.all([first, second].map((p) => p.page.context().close()));
});
