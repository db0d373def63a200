// The main flow on agent, collector and query service as three processes, and on a store that has less.

import { createSocket } from 'node:dgram';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendShop } from './shop.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

const collectorConfig = `
receivers:
  otlp: {protocols: {http: {endpoint: "localhost:0"}}}
  native: {protocols: {grpc: {endpoint: "localhost:0"}}}
exporters:
  disk:
extensions:
  remote_storage: {endpoint: "localhost:0", storage: disk}
service:
  data_dir: \${DATA}/data
  extensions: [remote_storage]
  pipelines:
    traces: {receivers: [otlp, native], exporters: [disk]}
`;

const agentConfig = (collector: string): string => `
receivers:
  thriftudp: {compact: {endpoint: "localhost:0"}}
exporters:
  native: {endpoint: "${collector}", tls: {insecure: true}}
service:
  data_dir: \${DATA}/data
  pipelines:
    traces: {receivers: [thriftudp], exporters: [native]}
`;

const queryConfig = (storage: string, protocol: string): string => `
exporters:
  grpc: {endpoint: "${storage}", tls: {insecure: true}, protocol: ${protocol}}
extensions:
  query: {storage: grpc, http: {endpoint: "localhost:0"}}
service:
  data_dir: \${DATA}/data
  extensions: [query]
`;

let browser: Browser;
const programs: Program[] = [];
let url: string;
let lesser: string;
let collector: Program;

async function start(config: string): Promise<Program> {
  const program = await Program.start(config);
  programs.push(program);
  return program;
}

const host = (address: string): string => new URL(address).host;

beforeAll(async () => {
  browser = await connect();
  collector = await start(collectorConfig);
  const storage = host(await collector.address('remote_storage', 'grpc'));
  const agent = await start(agentConfig(host(await collector.address('native', 'protocols.grpc'))));
  const [query, standard] = await Promise.all([start(queryConfig(storage, 'auto')), start(queryConfig(storage, 'v2'))]);
  [url, lesser] = await Promise.all([query.url(), standard.url()]);
  await sendShop(collector, 300);
  await sendDatagram(await agent.address('thriftudp', 'compact'), emitBatch('legacy', 'nightly report', 4711, Date.now() * 1000));
});

afterAll(async () => {
  await browser?.close();
  for (const program of programs.reverse()) await program.stop();
});

/** Variable-length numbers of the compact Thrift protocol. */
function varint(n: bigint): number[] {
  return n < 128n ? [Number(n)] : [Number(n & 127n) | 128, ...varint(n >> 7n)];
}

const int = (n: number | bigint): number[] => varint(BigInt(n) * 2n); // zigzag, not negative
const text = (s: string): number[] => [...varint(BigInt(s.length)), ...Buffer.from(s)];

/** A call of emitBatch with one span, as clients of the agent send it. `start` is in microseconds. */
function emitBatch(service: string, operation: string, id: number, start: number): Buffer {
  const process = [0x18, ...text(service), 0];
  const span = [0x16, ...int(id), 0x16, ...int(0), 0x16, ...int(id), 0x16, ...int(0), 0x18, ...text(operation), 0x25, ...int(1), 0x16, ...int(start), 0x16, ...int(1500), 0];
  return Buffer.from([0x82, 0x81, 0, ...text('emitBatch'), 0x1c, 0x1c, ...process, 0x19, 0x1c, ...span, 0, 0]);
}

async function sendDatagram(address: string, message: Buffer): Promise<void> {
  const { hostname, port } = new URL(address);
  const socket = createSocket('udp4');
  await new Promise((resolve) => socket.send(message, Number(port), hostname, resolve));
  socket.close();
}

const rows = (page: Page) => page.getByRole('grid', { name: 'Traces' }).locator('tbody').getByRole('row');
const spanRows = (page: Page) => page.getByRole('treegrid', { name: 'Spans' }).getByRole('row');

test('three processes: from the overview to the failed span', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(url + '/?from=now-40m'); // the time before has another version
  await page.getByRole('row', { name: /payment/ }).getByRole('link', { name: /%/ }).waitFor();
  await page.getByText('UpstreamTimeout').first().waitFor();
  await page.getByText('2.14.0').first().waitFor();
  await page.getByText('This process receives no spans; it only answers queries.').waitFor();
  await page.getByRole('row', { name: /payment/ }).getByRole('link', { name: /%/ }).click();
  await rows(page).first().waitFor();
  await page.getByRole('region', { name: 'Heatmap of durations' }).getByText(/^\d+$/).first().waitFor();
  const facets = page.getByRole('complementary', { name: 'Facets' });
  await facets.getByLabel('Find a field').fill('payment.provider');
  await facets.getByRole('button', { name: 'northpay', exact: true }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('{ service = "payment" && error && span.payment.provider = "northpay" }');
  const bar = page.getByRole('combobox', { name: 'Search', exact: true });
  await bar.fill('{ service = "payment" && span.payment.region = ');
  await page.getByRole('option', { name: 'eu-west' }).waitFor();
  await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['eu-west', 'us-east']);
  await bar.press('Escape');
  await rows(page).first().click();
  await spanRows(page).first().waitFor();
  await page.getByRole('complementary', { name: 'Span details' }).getByText('northpay').first().waitFor();
  await page.getByRole('searchbox', { name: 'Find in trace' }).fill('api.northpay.example');
  await page.getByRole('search').getByText(/^(\d of )?3$/).waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

test('three processes: a span that a client sent to the agent', async () => {
  const { page } = await newPage(browser);
  await page.goto(url + '/search?q=' + encodeURIComponent('{ service = "legacy" }'));
  await rows(page).filter({ hasText: 'nightly report' }).click();
  await spanRows(page).filter({ hasText: 'nightly report' }).waitFor();
  await page.context().close();
});

test('a store without counts: the pages name it, and work without', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(lesser);
  await page.getByText('This store does not count requests, so there is no overview.').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  await page.goto(lesser + '/status');
  await page.getByText('Span counts').waitFor();
  await expect.poll(() => page.getByText('Span counts').locator('..').innerText()).toContain('no');
  await page.goto(lesser + '/search?q=' + encodeURIComponent('{ service = "payment" && error }'));
  await page.getByText('This server\'s store cannot count spans, so heatmap and facets are not available.').waitFor();
  await rows(page).first().waitFor();
  await expect.poll(() => page.getByRole('complementary', { name: 'Facets' }).count()).toBe(0);
  await expect.poll(() => page.getByRole('tab', { name: 'Spans' }).count()).toBe(0);
  await rows(page).first().click();
  await page.getByRole('complementary', { name: 'Span details' }).getByText('payment.provider').first().waitFor();
  expect(problems.filter((p) => !p.includes('501'))).toEqual([]);
  await page.context().close();
});

test('three processes: traces as they arrive, and a service', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(url + '/search?live=1');
  const live = page.getByRole('region', { name: 'Live traces' });
  await live.getByText('Live, showing all').waitFor();
  const [id, root] = [traceID(), spanID()];
  await sendSpans(collector, [{ traceID: id, spanID: root, service: 'web', name: 'arrives', kind: 'server', start: Date.now() - 300, duration: 200 }]);
  await sendSpans(collector, [{ traceID: id, spanID: spanID(), parentID: root, service: 'db', name: 'query', start: Date.now() - 250, duration: 50 }]);
  await page.getByRole('row', { name: /arrives web/ }).getByRole('gridcell', { name: '2', exact: true }).waitFor();
  await page.goto(url + '/services/checkout');
  await page.getByRole('grid', { name: 'Operations' }).getByText('PlaceOrder').waitFor();
  await page.getByRole('grid', { name: 'Callers' }).getByText('gateway').waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

test('a store that has less: the live view and services say so', async () => {
  const { page } = await newPage(browser);
  await page.goto(lesser + '/search?live=1');
  await page.getByText(/Live: store cannot report spans as they are stored/).waitFor();
  await page.getByRole('button', { name: 'Show stored traces' }).click();
  await rows(page).first().waitFor();
  await page.goto(lesser + '/services');
  await page.getByRole('link', { name: 'payment', exact: true }).waitFor();
  await page.goto(lesser + '/services/payment');
  await page.getByText(/Service: store cannot count the calls of services/).waitFor();
  await page.context().close();
});
