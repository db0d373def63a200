// Status, sampling and missing traces: agent, collector and query service as three processes, and all in one.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage, small } from './browser.ts';
import { allInOne, Program } from './program.ts';
import { sendShop } from './shop.ts';

const strategies = JSON.stringify({
  default_strategy: { type: 'probabilistic', param: 0.5 },
  service_strategies: [{ service: 'gateway', type: 'probabilistic', param: 0.125 }, { service: 'search', type: 'ratelimiting', param: 7 }],
});

const collectorConfig = `
receivers:
  otlp: {protocols: {http: {endpoint: "localhost:0"}}}
  native: {protocols: {grpc: {endpoint: "localhost:0"}}, sampling: sampling}
processors:
  probabilistic_sampler: {sampling_percentage: 50}
exporters:
  disk:
extensions:
  sampling: {file: {path: "\${DATA}/strategies.json"}}
  remote_storage: {endpoint: "localhost:0", storage: disk}
  admin: {endpoint: "localhost:0"}
service:
  data_dir: \${DATA}/data
  extensions: [sampling, remote_storage, admin]
  pipelines:
    traces: {receivers: [otlp, native], processors: [probabilistic_sampler], exporters: [disk]}
`;

const agentConfig = (collector: string): string => `
receivers:
  thriftudp: {compact: {endpoint: "localhost:0"}}
exporters:
  native: {endpoint: "${collector}", tls: {insecure: true}, sending_queue: {}}
extensions:
  sampling: {remote: {endpoint: "${collector}", tls: {insecure: true}}, http: {endpoint: "localhost:0"}}
  admin: {endpoint: "localhost:0"}
service:
  data_dir: \${DATA}/data
  extensions: [sampling, admin]
  pipelines:
    traces: {receivers: [thriftudp], exporters: [native]}
`;

const queryConfig = (storage: string, peers: string[]): string => `
exporters:
  grpc: {endpoint: "${storage}", tls: {insecure: true}}
extensions:
  query: {storage: grpc, http: {endpoint: "localhost:0"}, peers: {endpoints: [${peers.map((p) => JSON.stringify(p)).join(', ')}], timeout: 2s}}
service:
  data_dir: \${DATA}/data
  extensions: [query]
`;

let browser: Browser;
const programs: Program[] = [];
let url: string;
let single: string;

async function start(config: string, files: Record<string, string> = {}): Promise<Program> {
  const program = await Program.start(config, [], files);
  programs.push(program);
  return program;
}

const host = (address: string): string => new URL(address).host;
const silent = 'http://127.0.0.1:1';

/** Ids whose numbers are 0.25 and 0.75: a sampler of 50 % drops the first one. */
const dropped = '0af7651916cd43dd0040000000000000';
const kept = '0af7651916cd43dd00c0000000000000';

beforeAll(async () => {
  browser = await connect();
  const collector = await start(collectorConfig, { 'strategies.json': strategies });
  const agent = await start(agentConfig(host(await collector.address('native', 'protocols.grpc'))));
  const admins = await Promise.all([agent, collector].map((p) => p.address('admin', 'http')));
  const query = await start(queryConfig(host(await collector.address('remote_storage', 'grpc')), [...admins, silent]));
  const one = await start(allInOne);
  [url, single] = await Promise.all([query.url(), one.url()]);
  await Promise.all([sendShop(collector, 100), sendShop(one, 100)]);
  const asked = await fetch(`${await agent.address('sampling', 'http')}/sampling?service=gateway`);
  expect(asked.status).toBe(200);
});

afterAll(async () => {
  await browser?.close();
  for (const program of programs.reverse()) await program.stop();
});

const lead = (page: Page) => page.getByRole('heading', { level: 1 });

test('the status page shows all processes, and those that do not answer', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(`${url}/status`);
  await expect.poll(() => lead(page).textContent()).toBe('1 of 4 processes does not respond');
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('connection refused');
  await expect.poll(() => page.getByText('This process and 3 others.').count()).toBe(1);
  const balances = page.getByText('Balances: each span has exactly one outcome.');
  await expect.poll(() => balances.count()).toBe(2);
  await expect.poll(() => page.locator('main, body').first().textContent()).toContain('dropped on purpose');
  await expect.poll(() => page.getByRole('heading', { name: /^Store disk/ }).count()).toBe(1);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('by keyboard: why a trace is missing, in a split deployment', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(`${url}/sampling`);
  await page.getByLabel('Trace ID').focus();
  await page.keyboard.type(dropped);
  await page.keyboard.press('Tab');
  await page.keyboard.type('gateway');
  await page.keyboard.press('Enter');
  await expect.poll(() => lead(page).textContent()).toMatch(/^(Dropped by probabilistic_sampler: it keeps 50\.0|Not sampled)/);
  await expect.poll(() => new URL(page.url()).search).toBe(`?service=gateway&trace=${dropped}`);
  const stages = page.getByRole('listitem').filter({ hasText: 'Probability' });
  await expect.poll(() => stages.first().textContent()).toContain('50.0');
  await expect.poll(() => page.getByText('Raise sampling_percentage of probabilistic_sampler').count()).toBe(1);
  await expect.poll(() => page.getByText('A process did not respond').count()).toBe(1);
  // The strategies of the collector have its file; the agent has the latest client.
  await expect.poll(() => page.getByRole('complementary').textContent()).toMatch(/7 traces\/s[\s\S]*strategies\.json:1/);
  await page.goto(`${url}/sampling?service=Gateway&trace=${kept}`);
  await expect.poll(() => lead(page).textContent()).toBe('No span of Gateway is stored');
  await page.getByRole('link', { name: 'Ask about gateway' }).press('Enter');
  await expect.poll(() => new URL(page.url()).searchParams.get('service')).toBe('gateway');
  expect(problems).toEqual([]);
  await page.context().close();
});

test('from a missing trace to the reason, without a sampling extension', async () => {
  const { page } = await newPage(browser, { viewport: small });
  await page.goto(`${single}/trace/${kept}`);
  await page.getByRole('link', { name: 'Why is it missing?' }).click();
  await expect.poll(() => lead(page).textContent()).toBe('Sampling does not drop this trace');
  await expect.poll(() => page.getByText('No sampling extension is configured').count()).toBe(1);
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.goto(`${single}/sampling`);
  await page.getByLabel('Trace ID').fill('not hex');
  await page.getByRole('button', { name: 'Why is it missing?' }).click();
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('This is not a trace ID');
  await page.goto(`${single}/status`);
  await expect.poll(() => page.getByText('This page shows the process that serves it.').count()).toBe(1);
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.context().close();
});
