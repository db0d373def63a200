// The connection of the live view: reconnects, and rests while the page is in the background.

import { ApiError, endedEarly, unreadable } from '../../../api/client';
import { events, type ServerEvent } from '../../../api/events';
import type { TailStatus, TailTrace } from '../../../api/tail';

/** State of the connection. */
export type Connection =
  | { state: 'connecting' | 'open' | 'resting' }
  /** Connects again at the time `until`, in milliseconds since the epoch; at once if nothing is wrong. */
  | { state: 'waiting'; error: ApiError | null; until: number }
  /** The same request would fail again. */
  | { state: 'failed'; error: ApiError };

/** What receives the events. */
export interface FeedSink {
  trace: (t: TailTrace) => void;
  status: (s: TailStatus) => void;
  connection: (c: Connection) => void;
}

const firstDelay = 1000;
const maxDelay = 30_000;
/** The server sends something every 15 seconds. */
const silence = 45_000;
/** Milliseconds in the background until the page disconnects. */
const patience = 60_000;
/** A connection that has lasted this long was a success: waiting begins with the first delay again. An answer that the server has ended may be short. */
const success = 10_000;
const complete = 900;

/** Delay before an attempt to connect, in milliseconds: doubled each time, with up to a fifth less, so that viewers do not return all at once. */
export function delayOf(attempt: number, retryAfter: number, random = Math.random()): number {
  const delay = Math.min(maxDelay, firstDelay * 2 ** Math.min(attempt, 10));
  return Math.max(retryAfter * 1000, delay * (1 - 0.2 * random));
}

/** A connection that lasts until `close`. */
export class Feed {
  private abort = new AbortController();
  private state: Connection['state'] = 'connecting';
  private timer = 0; // of the next attempt, or of the end in the background
  private watchdog = 0;
  private attempts = 0;
  private readonly visibility = (): void => this.onVisibility();

  constructor(private readonly q: string, private readonly sink: FeedSink) {
    document.addEventListener('visibilitychange', this.visibility);
    this.connect();
  }

  /** Ends the connection. */
  close(): void {
    document.removeEventListener('visibilitychange', this.visibility);
    this.disconnect();
  }

  /** Connects now, if it is waiting or has failed. */
  retry(): void {
    this.disconnect();
    this.connect();
  }

  private disconnect(): void {
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.abort.abort();
  }

  private become(c: Connection): void {
    this.state = c.state;
    this.sink.connection(c);
  }

  private connect(): void {
    const abort = (this.abort = new AbortController());
    let opened = 0;
    let lost = false;
    const alive = (): void => {
      clearTimeout(this.watchdog);
      this.watchdog = window.setTimeout(() => { lost = true; abort.abort(); }, silence);
    };
    const ended = (error: ApiError | null): void => {
      if (abort.signal.aborted && !lost) return;
      clearTimeout(this.watchdog);
      if (opened && Date.now() - opened > (error || lost ? success : complete)) this.attempts = 0;
      this.wait(lost ? new ApiError(0, endedEarly) : error);
    };
    this.become({ state: 'connecting' });
    alive();
    const sink = {
      alive,
      open: () => { opened = Date.now(); this.become({ state: 'open' }); },
      event: (e: ServerEvent) => { if (!abort.signal.aborted) this.take(e); },
    };
    events('tail', { q: this.q, of: 'traces' }, sink, abort.signal).then(() => ended(null), (e: unknown) => ended(e instanceof ApiError ? e : new ApiError(0, unreadable)));
  }

  private take(e: ServerEvent): void {
    if (e.name === 'trace') this.sink.trace(JSON.parse(e.data) as TailTrace);
    if (e.name === 'status') this.sink.status(JSON.parse(e.data) as TailStatus);
  }

  private wait(error: ApiError | null): void {
    clearTimeout(this.timer);
    if (error && !error.passing) return this.become({ state: 'failed', error });
    if (document.hidden) return this.become({ state: 'resting' });
    // The server ends each answer after some time.
    const delay = !error && this.attempts === 0 ? 0 : delayOf(this.attempts, error?.retryAfter ?? 0);
    this.attempts++;
    this.become({ state: 'waiting', error, until: Date.now() + delay });
    this.timer = window.setTimeout(() => this.connect(), delay);
  }

  private onVisibility(): void {
    const running = this.state === 'open' || this.state === 'connecting';
    if (!document.hidden) {
      if (running) clearTimeout(this.timer);
      else if (this.state !== 'failed') this.retry();
    } else if (running) {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => {
        this.disconnect();
        this.become({ state: 'resting' });
      }, patience);
    }
  }
}
