// Server-sent events over fetch: EventSource cannot send credentials or the tenant.

import { ApiError, endedEarly, request, type Params } from './client';

/** An event of the server. */
export interface ServerEvent {
  name: string;
  data: string;
}

/** Longest event in characters. The server's are far shorter. */
const maxEvent = 1 << 22;

/** Divides a stream of text into events. */
export class EventParser {
  private rest = '';

  /** Returns the events that end in the next part of the text. */
  push(text: string): ServerEvent[] {
    const parts = (this.rest + text).split('\n\n');
    this.rest = parts.pop()!;
    if (this.rest.length > maxEvent) throw new ApiError(0, endedEarly);
    return parts.flatMap((part) => eventOf(part) ?? []);
  }
}

/** The event of a block of lines; null for comments. */
function eventOf(block: string): ServerEvent | null {
  const event = { name: 'message', data: '' };
  for (const line of block.split('\n')) {
    const [, key, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (key === 'event') event.name = value;
    if (key === 'data') event.data += (event.data && '\n') + value;
  }
  return event.data ? event : null;
}

/** What receives a stream of events. */
export interface EventSink {
  /** The server has accepted the request. */
  open?: () => void;
  event: (e: ServerEvent) => void;
  /** Something was received, also if it is not an event. */
  alive?: () => void;
}

/** Reads server-sent events of `/api/ui/v1/NAME` until the answer ends or is aborted. Throws ApiError if the request fails or the connection is lost. */
export async function events(name: string, params: Params, sink: EventSink, signal: AbortSignal): Promise<void> {
  const response = await request('/api/ui/v1/' + name, params, { signal });
  sink.open?.();
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  for (;;) {
    const { value, done } = await reader.read().catch((e: unknown) => { throw signal.aborted ? e : new ApiError(0, endedEarly); });
    if (done) return;
    sink.alive?.();
    for (const e of parser.push(value)) sink.event(e);
  }
}
