// Starts the built program for a test, with its own ports and data.

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const executable = process.env.TRACING_BINARY ?? fileURLToPath(new URL('../../../bin/tracing', import.meta.url));

/** Milliseconds until a program must be ready. */
const startTimeout = 30_000;

/** Receivers and store in one process. `${DATA}` is the folder of the test, and port 0 is a free port. */
export const allInOne = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}
  zipkin: {endpoint: "localhost:0"}
exporters:
  disk:
extensions:
  query: {storage: disk, http: {endpoint: "localhost:0"}}
  admin: {endpoint: "localhost:0"}
service:
  data_dir: \${DATA}/data
  extensions: [query, admin]
  pipelines:
    traces: {receivers: [otlp, zipkin], exporters: [disk]}
`;

type LogLine = Record<string, unknown>;

/** A running program. */
export class Program {
  /** The log, as it is written. */
  readonly log: LogLine[] = [];
  private text = '';
  private ended = false;
  private readonly waiting = new Set<() => void>();

  private constructor(private readonly process: ChildProcess, readonly folder: string) {
    process.stderr!.setEncoding('utf8').on('data', (part: string) => this.read(part));
    process.on('close', () => {
      this.ended = true;
      this.wake();
    });
  }

  /**
   * Starts a program with a configuration, for example `allInOne`, and with settings such as
   * `extensions::query::base_path=/x`. Files are written into the folder of the test first.
   */
  static async start(config = allInOne, settings: string[] = [], files: Record<string, string> = {}): Promise<Program> {
    const folder = mkdtempSync(join(tmpdir(), 'tracing-ui-'));
    const inFolder = (text: string): string => text.replaceAll('${DATA}', folder);
    for (const [name, text] of Object.entries({ ...files, 'tracing.yaml': inFolder(config) })) writeFileSync(join(folder, name), text);
    const args = ['--config', join(folder, 'tracing.yaml'), '--log-encoding', 'json', ...settings.flatMap((s) => ['--set', inFolder(s)])];
    const program = new Program(spawn(executable, args, { stdio: ['ignore', 'ignore', 'pipe'] }), folder);
    await program.await({ msg: 'Health Check state change', status: 'ready' });
    return program;
  }

  /** Process id. */
  get pid(): number {
    return this.process.pid!;
  }

  /** Address of a listener, such as `http://127.0.0.1:4318`. */
  async address(component: string, listener: string): Promise<string> {
    const line = await this.await({ msg: 'listening', component, listener });
    return 'http://' + (line.address as string);
  }

  /** Address of the pages and of the query APIs. */
  url(): Promise<string> {
    return this.address('query', 'http');
  }

  /** Waits for a line of the log with these members. */
  async await(members: LogLine): Promise<LogLine> {
    const deadline = Date.now() + startTimeout;
    for (;;) {
      const line = this.log.find((l) => Object.entries(members).every(([key, value]) => l[key] === value));
      if (line) return line;
      if (this.ended || Date.now() > deadline) {
        throw new Error(`${this.ended ? 'the program ended' : 'timeout'} without ${JSON.stringify(members)} in its log:\n${JSON.stringify(this.log, null, 1)}${this.text}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        this.waiting.add(() => (clearTimeout(timer), resolve()));
      });
    }
  }

  /** Stops the program and removes its folder. */
  async stop(): Promise<void> {
    this.process.kill('SIGTERM');
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 10_000);
    if (!this.ended) await new Promise((resolve) => this.process.once('close', resolve));
    clearTimeout(timer);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private read(part: string): void {
    const lines = (this.text + part).split('\n');
    this.text = lines.pop()!;
    for (const line of lines) this.log.push(parseLine(line));
    this.wake();
  }

  private wake(): void {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }
}

/** Errors before the log exists are plain text. */
function parseLine(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { msg: line };
  }
}
