// A proxy between the browser and the program that delays, damages and refuses answers.

import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What happens to a request instead of being passed on. */
export interface Fault {
  /** Answers with this status, `headers` and `body`. */
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  /** Never answers. */
  hang?: boolean;
  /** Closes the connection without an answer. */
  drop?: boolean;
  /** Milliseconds before the request is passed on. */
  delay?: number;
  /** Passes on the first lines of the answer, by default half of its text, and then closes the connection (`cut`) or ends the answer (`end`). */
  lines?: number;
  after?: 'cut' | 'end';
  /** The connection stays open until then; by default for 100 ms. What the page has not read when it is cut is lost. */
  until?: Promise<unknown>;
  /** Milliseconds between the lines of the answer. */
  slow?: number;
}

/** A request that the browser has sent. */
export interface Seen {
  path: string;
  state: 'open' | 'answered' | 'aborted';
}

/** A proxy in front of a program. */
export class Proxy {
  readonly seen: Seen[] = [];
  private faults: [RegExp, Fault][] = [];

  private constructor(private readonly server: Server, public target: string) {
    server.on('request', (r: IncomingMessage, w: ServerResponse) => void this.handle(r, w));
  }

  /** Starts a proxy in front of an address. */
  static async start(target: string): Promise<Proxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Proxy(server, target);
  }

  /** Address of the proxy. */
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** From now on, requests whose path matches get the fault. */
  break(path: RegExp, fault: Fault): void {
    this.faults.push([path, fault]);
  }

  /** From now on, requests are passed on. Those that hang stay open. */
  heal(): void {
    this.faults = [];
  }

  /** Stops the proxy. */
  stop(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private async handle(r: IncomingMessage, w: ServerResponse): Promise<void> {
    const seen: Seen = { path: r.url!, state: 'open' };
    this.seen.push(seen);
    w.on('close', () => { seen.state = w.writableFinished ? 'answered' : 'aborted'; });
    const fault = this.faults.find(([path]) => path.test(r.url!))?.[1] ?? {};
    if (fault.hang) return;
    if (fault.drop) return void r.socket.destroy();
    if (fault.status) return void w.writeHead(fault.status, { 'content-type': 'text/html', ...fault.headers }).end(fault.body);
    if (fault.delay) await wait(fault.delay);
    const { hostname, port } = new URL(this.target);
    const headers = { ...r.headers, 'accept-encoding': 'identity' };
    const passed = request({ hostname, port, path: r.url, method: r.method, headers, agent: false }, (answer) => void passOn(answer, w, fault));
    passed.on('error', () => r.socket.destroy()); // no server
    w.on('close', () => passed.destroy());
    r.pipe(passed);
  }
}

async function passOn(answer: IncomingMessage, w: ServerResponse, fault: Fault): Promise<void> {
  w.writeHead(answer.statusCode!, answer.headers);
  if (!fault.after && !fault.slow) return void answer.pipe(w);
  let text = '';
  answer.setEncoding('utf8');
  for await (const part of answer) text += part as string;
  const parts = fault.after && !fault.lines ? [text.slice(0, text.length / 2)] : text.split(/(?<=\n)/).slice(0, fault.lines);
  for (const part of parts) {
    w.write(part);
    await wait(fault.slow ?? 0);
  }
  await (fault.until ?? wait(100)); // by then what was written is sent
  if (fault.after === 'cut') w.destroy();
  else w.end();
}

const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
