// What the worker does, apart from exchanging messages.

import type { Envelope, Outline } from '../api/types';
import { buildModel } from './model/build';
import { bytesOf } from './model/columns';
import { findSpans, spansWithIDs, union } from './model/find';
import type { TraceModel } from './model/types';
import type { Calls } from './protocol';

/** The current trace, and the traces of files. */
export class Handler {
  private outline: Outline | null = null;
  private messages: string[] = [];
  private model: TraceModel | null = null;

  /** Does one call. Errors can be shown to users. */
  async handle(call: keyof Calls, args: unknown): Promise<unknown> {
    switch (call) {
      case 'outline': return this.decode(args as Calls['outline']['in']);
      case 'skew': return this.build((args as Calls['skew']['in']).skew);
      case 'find': return this.find(args as Calls['find']['in']);
      default: throw new Error(`Unknown call ${call}.`);
    }
  }

  private decode({ bytes, skew }: Calls['outline']['in']): TraceModel {
    const answer = JSON.parse(new TextDecoder().decode(bytes)) as Envelope<Outline>;
    this.outline = answer.data;
    this.messages = (answer.errors ?? []).map((e) => e.msg);
    return this.build(skew);
  }

  private build(skew: boolean): TraceModel {
    if (!this.outline) throw new Error('No trace is loaded.');
    this.model = buildModel(this.outline, this.messages, skew);
    return this.model;
  }

  private find({ q, ids }: Calls['find']['in']): Calls['find']['out'] {
    if (!this.model) throw new Error('No trace is loaded.');
    const found = findSpans(this.model, q);
    if (!ids) return { spans: found, complete: false };
    return { spans: union(found, spansWithIDs(this.model, bytesOf(ids, atob(ids).length))), complete: true };
  }
}
