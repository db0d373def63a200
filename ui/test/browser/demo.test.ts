import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { allInOne, Program } from './program.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await connect();
});
afterAll(() => browser?.close());

test('demo data is loaded with a click, the overview names the bad version, and Explain finds it', async () => {
  const program = await Program.start(allInOne, ['extensions::query::demo::rate=1']);
  const { page, problems } = await newPage(browser);
  await page.goto(await program.url());
  await page.getByRole('button', { name: 'Load demo data' }).click();
  // The data is random: the frontend, which is slow and fails at times, is named as one of both.
  await page.getByRole('heading', { level: 1, name: /^(3 of 10 services are failing|2 of 10 services are failing, 1 of 10 )/ }).waitFor();
  await page.getByText(/^payment fails .* of requests, usually .*, since .*\d\d:\d\d when version 2\.14\.0 appeared$/).waitFor();
  await page.getByRole('region', { name: 'Incidents' }).getByRole('button', { name: 'Explain errors' }).click();
  const lines = page.getByRole('region', { name: 'Attributes' }).getByRole('listitem');
  // The flag came with the version.
  await expect.poll(() => lines.first().innerText()).toMatch(/2\.14\.0|feature_flag\.result\.variant = on/);
  await expect.poll(async () => (await lines.allInnerTexts()).slice(0, 2).join('\n')).toMatch(/service\.version = 2\.14\.0/);
  await page.goto((await program.url()) + '/services/payment');
  await page.getByRole('link', { name: /^versions 2\.1\d\.\d, 2\.1\d\.\d \(2\.14\.0 first seen .*\d\d:\d\d\)$/ }).waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
  await program.stop();
});

test('without the key, the page has the command', async () => {
  const program = await Program.start();
  const { page } = await newPage(browser);
  await page.goto(await program.url());
  await page.getByRole('button', { name: 'Send demo data' }).click();
  const port = new URL(await program.address('otlp', 'protocols.http')).port;
  await page.getByText(new RegExp(`^tracing demo --otlp http://\\S+:${port}$`)).waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Load demo data' }).count()).toBe(0);
  await page.context().close();
  await program.stop();
});
