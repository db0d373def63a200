// What a new user copies to send the first span.

import type { Ingest } from '../../api/types';
import { t } from '../../shell/text';

/** A way to send spans. */
export type SnippetTab = 'sdk' | 'curl' | 'collector' | 'zipkin' | 'jaeger' | 'demo';

/** Labels of the ways, in their order. */
export const snippetTabs: { id: SnippetTab; label: string }[] = [
  { id: 'sdk', label: t('OpenTelemetry SDK') }, { id: 'curl', label: t('curl') }, { id: 'collector', label: t('Collector') },
  { id: 'zipkin', label: t('Zipkin') }, { id: 'jaeger', label: t('Jaeger agent') }, { id: 'demo', label: t('Demo data') },
];

/** What the snippets contain of this installation. Ports are 0 if no receiver listens for the protocol. */
export interface Target {
  host: string;
  /** Header and name of the tenant, if tenants are separated. */
  tenant?: { header: string; name: string };
  otlpHTTP: number;
  otlpGRPC: number;
  zipkin: number;
  agent: number;
}

/** Port of an address such as `:4318` or `[::]:4318`; the first one of a list. 0 if there is none. */
export function portOf(endpoint: string): number {
  return Number(/:(\d{1,5})(?:\/|,|$|\s)/.exec(endpoint)?.[1] ?? 0);
}

/** Host and ports for the snippets. Without receivers in this process, the standard ports, because another process receives. */
export function targetOf(ingest: Pick<Ingest, 'receives' | 'receivers'> | null, host: string): Target {
  if (!ingest?.receives) return { host, otlpHTTP: 4318, otlpGRPC: 4317, zipkin: 9411, agent: 6831 };
  const find = (name: RegExp, protocol: RegExp): number => portOf(ingest.receivers.find((r) => name.test(r.name) && protocol.test(r.protocol))?.endpoint ?? '');
  return { host, otlpHTTP: find(/^otlp/, /http/), otlpGRPC: find(/^otlp/, /grpc/), zipkin: find(/^zipkin/, /./), agent: find(/^thriftudp|^jaeger/, /compact|udp/) };
}

/** Whether other machines cannot reach the receivers, because they listen on the loopback interface only. */
export function onlyLocal(ingest: Pick<Ingest, 'receivers'> | null): boolean {
  const otlp = ingest?.receivers.filter((r) => /^otlp/.test(r.name)) ?? [];
  return otlp.length > 0 && otlp.every((r) => /^(localhost|127\.|\[::1\])/.test(r.endpoint));
}

/** Values of a test span: ids in hex, times in nanoseconds. */
export interface TestSpan {
  trace: string;
  span: string;
  start: string;
  end: string;
}

/** Makes a test span of 250 ms that ends at `now`, with random bytes for its ids. */
export function testSpan(now: number, random: Uint8Array): TestSpan {
  const hex = [...random].map((b) => b.toString(16).padStart(2, '0')).join('');
  return { trace: hex.slice(0, 32), span: hex.slice(32, 48), start: `${Math.round(now) - 250}000000`, end: `${Math.round(now)}000000` };
}

/** One block of text to copy. */
export interface Snippet {
  /** What to do with it. */
  intro: string;
  text: string;
}

/** The blocks of a tab; none if no receiver listens for its protocol. */
export function snippetsOf(tab: SnippetTab, target: Target, s: TestSpan): Snippet[] {
  switch (tab) {
    case 'sdk': return target.otlpHTTP ? [sdk(target), curl(target, s, t('Or send one test span from this machine:'))] : [];
    case 'curl': return target.otlpHTTP ? [curl(target, s, t('Send one test span from a shell:'))] : [];
    case 'collector': return target.otlpGRPC ? [collector(target)] : [];
    case 'zipkin': return target.zipkin ? [zipkin(target, s)] : [];
    case 'jaeger': return target.agent ? [agent(target)] : [];
    case 'demo': return target.otlpHTTP ? [demo(target)] : [];
  }
}

function sdk(target: Target): Snippet {
  return {
    intro: t('Set these variables for your program and restart it. Any OpenTelemetry SDK reads them.'),
    text: [
      `export OTEL_EXPORTER_OTLP_ENDPOINT=http://${target.host}:${target.otlpHTTP}`,
      'export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf',
      'export OTEL_SERVICE_NAME=my-service',
      'export OTEL_TRACES_SAMPLER=parentbased_always_on',
      ...(target.tenant ? [`export OTEL_EXPORTER_OTLP_HEADERS=${target.tenant.header}=${encodeURIComponent(target.tenant.name)}`] : []),
    ].join('\n'),
  };
}

function curl(target: Target, s: TestSpan, intro: string): Snippet {
  return {
    intro,
    text: `curl -s http://${target.host}:${target.otlpHTTP}/v1/traces${tenantOption(target)} \\
  -H 'Content-Type: application/json' -d '{"resourceSpans":[{
  "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"hello"}}]},
  "scopeSpans":[{"spans":[{"traceId":"${s.trace}",
    "spanId":"${s.span}","name":"first span","kind":2,
    "startTimeUnixNano":"${s.start}","endTimeUnixNano":"${s.end}"}]}]}]}'`,
  };
}

/** For the shell, in single quotes. */
function tenantOption(target: Target): string {
  return target.tenant ? ` -H '${target.tenant.header}: ${target.tenant.name.replaceAll("'", "'\\''")}'` : '';
}

function collector(target: Target): Snippet {
  return {
    intro: t('Add this exporter to your OpenTelemetry Collector\'s configuration, and its name to the exporters of the traces pipeline.'),
    text: `exporters:
  otlp/tracing:
    endpoint: ${target.host}:${target.otlpGRPC}
    tls:
      insecure: true${target.tenant ? `
    headers:
      ${target.tenant.header}: ${JSON.stringify(target.tenant.name)}` : ''}

service:
  pipelines:
    traces:
      exporters: [otlp/tracing]`,
  };
}

function zipkin(target: Target, s: TestSpan): Snippet {
  return {
    intro: t('Point your Zipkin reporter at http://{host}:{zipkin}/api/v2/spans, or send one test span:', { host: target.host, zipkin: target.zipkin }),
    text: `curl -s http://${target.host}:${target.zipkin}/api/v2/spans${tenantOption(target)} -H 'Content-Type: application/json' -d '[{
  "traceId":"${s.trace}","id":"${s.span}","kind":"SERVER","name":"first span",
  "timestamp":${s.start.slice(0, -3)},"duration":250000,"localEndpoint":{"serviceName":"hello"}}]'`,
  };
}

function agent(target: Target): Snippet {
  return {
    intro: t('For programs with a Jaeger client library, which send UDP datagrams:'),
    text: [`export JAEGER_AGENT_HOST=${target.host}`, `export JAEGER_AGENT_PORT=${target.agent}`, 'export JAEGER_SERVICE_NAME=my-service', 'export JAEGER_SAMPLER_TYPE=const', 'export JAEGER_SAMPLER_PARAM=1'].join('\n'),
  };
}

function demo(target: Target): Snippet {
  return {
    intro: t('Send traces of a demo shop with ten services; one service gets a bad version. The command is the program that runs this server.'),
    text: `tracing demo --otlp http://${target.host}:${target.otlpHTTP}${target.tenant ? ` --tenant '${target.tenant.name.replaceAll("'", "'\\''")}'` : ''}`,
  };
}

/** How to start the receiver that a tab needs, where it is missing. */
export function missingReceiver(tab: SnippetTab): string {
  switch (tab) {
    case 'zipkin': return t('No receiver listens for Zipkin. Start the server with --collector.zipkin.host-port=:9411.');
    case 'jaeger': return t('No receiver listens for datagrams from Jaeger clients. Add the thriftudp receiver to the configuration.');
    default: return t('No receiver listens for OTLP. Add the otlp receiver to the configuration.');
  }
}
