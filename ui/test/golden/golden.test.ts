// The types of API answers agree with the golden files of the server: no member is missing, and none is unknown.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ui = fileURLToPath(new URL('../..', import.meta.url));
const packages = join(ui, '../extensions/query/internal/uiapi');

/** The folders of the server with golden files, and the modules with the types of their answers. */
const modules: Record<string, string> = { '.': 'types.ts', baseline: 'baseline.ts', servicemap: 'map.ts', spangroups: 'groups.ts', explain: 'explain.ts', errorgroups: 'errors.ts', deployment: 'deployment.ts' };

/** The type of an answer, or of each line of a stream. A route that the UI does not use yet has none. */
const types: [path: RegExp, type: string | null][] = [
  [/^config$/, 'Envelope<Config>'],
  [/^search$/, 'SearchLine'],
  [/^heatmap$/, 'Envelope<Heatmap>'],
  [/^(facets|compare)$/, 'Envelope<Facets>'],
  [/^(keys|values)$/, 'Envelope<Names>'],
  [/^outline\/[^/]+$/, 'Envelope<Outline>'],
  [/^outline\/[^/]+\/spans$/, 'Envelope<SpanDetails>'],
  [/^outline\/[^/]+\/find$/, 'Envelope<Found>'],
  [/^outline\/[^/]+\/keys$/, 'Envelope<AttributeKeys>'],
  [/^outline\/[^/]+\/values$/, 'Envelope<AttributeColumn>'],
  [/^services$/, 'Envelope<Services>'],
  [/^service$/, 'Envelope<OneService>'],
  [/^errors$/, 'Envelope<Errors>'],
  [/^changes$/, 'Envelope<Changes>'],
  [/^incidents$/, 'Envelope<Incidents>'],
  [/^ingest$/, 'Envelope<Ingest>'],
  [/^baseline\/[^/]+$/, 'Envelope<Baseline>'],
  [/^typical\/[^/]+$/, 'Envelope<Typical>'],
  [/^tail$/, null],
  [/^map$/, 'Envelope<ServiceMap>'],
  [/^groups$/, 'Envelope<Groups>'],
  [/^explain$/, 'Envelope<Explanation>'],
  [/^critical$/, 'Envelope<CriticalPaths>'],
  [/^tree$/, 'Envelope<TraceTree>'],
  [/^status$/, 'Envelope<StatusAnswer>'],
  [/^sampling$/, 'Envelope<Processes<Strategies>>'],
  [/^sampling\/explain$/, 'Envelope<MissingTrace>'],
];

interface Answer {
  file: string;
  type: string;
  body: string;
}

/** Answers of a golden file: a request, dashes, a status and headers, an empty line, and the body. */
function answers(file: string): Answer[] {
  const text = readFileSync(join(packages, file), 'utf8');
  const [head, rest] = [text.slice(0, text.indexOf('---\n')), text.slice(text.indexOf('---\n') + 4)];
  const path = /^[A-Z]+ \/api\/ui\/v1\/([^ ?\n]*)/.exec(head)?.[1];
  const status = Number.parseInt(rest, 10);
  const body = rest.slice(rest.indexOf('\n\n') + 2).trim();
  if (status === 304 || path === undefined || (status === 404 && !body.startsWith('{'))) return [];
  if (status >= 400) return [{ file, type: 'Envelope<null>', body }];
  const entry = types.find(([pattern]) => pattern.test(path));
  if (!entry) throw new Error(`${file}: route ${path} has no type in ui/test/golden/golden.test.ts`);
  const [, type] = entry;
  if (type === null) return [];
  const lines = rest.includes('Content-Type: application/x-ndjson') ? body.split('\n') : [body];
  return lines.map((line) => ({ file, type, body: line }));
}

/** TypeScript code that compiles if all answers have their types, and if the compiler notices mistakes in them. */
function code(all: Answer[]): string {
  const lines: string[] = [];
  const known = new Set<string>();
  for (const module of new Set([...Object.values(modules), 'attributes.ts', 'incidents.ts', 'service.ts', 'tree.ts'])) {
    const source = readFileSync(join(ui, 'src/api', module), 'utf8');
    const declared = [...source.matchAll(/^export (?:type|interface) (\w+)/gm)].map((m) => m[1]!).filter((n) => !known.has(n));
    for (const name of declared) known.add(name);
    lines.push(`import type { ${declared.join(', ')} } from ${JSON.stringify(join(ui, 'src/api', module))};`);
  }
  for (const { file, type, body } of all) lines.push(`(${body}) satisfies ${type}; // ${file}`);
  for (const type of new Set(all.map((a) => a.type))) {
    const { body } = all.find((a) => a.type === type)!;
    lines.push('// @ts-expect-error an unknown member', `({"unknown":1,${body.slice(1)}) satisfies ${type};`);
    if (!body.startsWith('{"data":{')) continue;
    const data = body.slice('{"data":{'.length);
    lines.push('// @ts-expect-error an unknown member', `({"data":{"unknown":1,${data}) satisfies ${type};`);
    lines.push('// @ts-expect-error members are missing', `({"data":{},"errors":null}) satisfies ${type};`);
  }
  return lines.join('\n');
}

/** Runs the compiler; returns its messages. */
function compile(source: string): string {
  const work = mkdtempSync(join(tmpdir(), 'tracing-golden-'));
  try {
    writeFileSync(join(work, 'golden.ts'), source);
    const options = { target: 'ES2023', lib: ['ES2023'], module: 'ESNext', moduleResolution: 'bundler', strict: true, noEmit: true };
    const compilerOptions = { ...options, types: [], allowImportingTsExtensions: true };
    writeFileSync(join(work, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['golden.ts'] }));
    execFileSync(process.execPath, [join(ui, 'node_modules/typescript/bin/tsc'), '-p', work, '--pretty', 'false'], { encoding: 'utf8' });
    return '';
  } catch (e) {
    return explain((e as { stdout: string }).stdout, source);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Names the golden file of each message. */
function explain(messages: string, source: string): string {
  const lines = source.split('\n');
  return messages.replace(/^.*golden\.ts\((\d+),\d+\)/gm, (place, line) => {
    const text = lines[Number(line) - 1];
    return text ? (/\/\/ (\S+\.txt)$/.exec(text)?.[1] ?? text.slice(0, 120)) : place;
  });
}

test('the types of answers agree with the golden files of the server', { timeout: 60_000 }, () => {
  const files = Object.keys(modules).flatMap((p) => readdirSync(join(packages, p, 'testdata')).map((f) => join(p, 'testdata', f)));
  const all = files.filter((f) => f.endsWith('.txt')).sort().flatMap(answers);
  expect(all.length).toBeGreaterThan(30);
  expect(compile(code(all))).toBe('');
});

test('the check notices a wrong type', { timeout: 60_000 }, () => {
  expect(compile(code([{ file: 'a.txt', type: 'Envelope<Names>', body: '{"data":{"names":[1],"more":false},"errors":null}' }]))).toContain('a.txt');
});
