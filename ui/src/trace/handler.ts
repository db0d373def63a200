// What the worker does, apart from exchanging messages.

import type { Envelope, Outline, SpanDetail } from '../api/types';
import { setCatalog, t } from '../shell/text';
import { buildModel } from './model/build';
import { bytesOf } from './model/columns';
import { findAlso, isSearch } from './model/find';
import type { AttributeValues, FileContent, TraceModel } from './model/types';
import type { FileTraces } from './files/traces';
import type { Comparison } from '../compare/types';
import type { Calls, InputFile } from './protocol';

/** The current trace, and the traces of files. */
export class Handler {
  private outline: Outline | null = null;
  private messages: string[] = [];
  private model: TraceModel | null = null;
  private files: FileTraces | null = null;
  /** The spans of the current trace in full, in the order of the model; null if the server has them. */
  private spans: SpanDetail[] | null = null;

  /** Does one call. Errors can be shown to users. */
  async handle(call: keyof Calls, args: unknown): Promise<unknown> {
    switch (call) {
      case 'language': return setCatalog(args as Calls['language']['in']);
      case 'outline': return this.decode(args as Calls['outline']['in']);
      case 'whole': return this.decodeWhole(args as Calls['whole']['in']);
      case 'skew': return this.build((args as Calls['skew']['in']).skew);
      case 'find': return this.find(args as Calls['find']['in']);
      case 'details': return this.details((args as Calls['details']['in']).ids);
      case 'extras': return (await import('./model/extras')).buildExtras(this.loaded());
      case 'keys': return (await import('./model/attributes')).keysOf(this.inFile());
      case 'values': return this.values(args as Calls['values']['in']);
      case 'compare': return this.compare(args as Calls['compare']['in']);
      case 'read': return this.read((args as Calls['read']['in']).files);
      case 'open': return this.open(args as Calls['open']['in']);
    }
  }

  private async compare({ a, b }: Calls['compare']['in']): Promise<Comparison> {
    return (await import('../compare/match')).compareTraces(a, b);
  }

  private decode({ bytes, skew }: Calls['outline']['in']): TraceModel {
    const answer = JSON.parse(new TextDecoder().decode(bytes)) as Envelope<Outline>;
    this.outline = answer.data;
    this.messages = (answer.errors ?? []).map((e) => e.msg);
    this.spans = null;
    return this.build(skew);
  }

  private async decodeWhole({ bytes, skew }: Calls['whole']['in']): Promise<TraceModel> {
    const { FileTraces } = await import('./files/traces');
    const files = new FileTraces();
    await files.read([{ name: '', blob: new Blob([bytes]) }]);
    const [trace] = files.list();
    if (!trace) throw new Error(files.problems[0]?.text ?? t('The server\'s response has no spans.'));
    this.files = files;
    return this.open({ traceID: trace.traceID, skew });
  }

  private build(skew: boolean): TraceModel {
    if (!this.outline) throw new Error('No trace is loaded.');
    this.model = buildModel(this.outline, this.messages, skew);
    return this.model;
  }

  private loaded(): TraceModel {
    if (!this.model) throw new Error('No trace is loaded.');
    return this.model;
  }

  private inFile(): SpanDetail[] {
    if (!this.spans) throw new Error('The spans of this trace are not in a file.');
    return this.spans;
  }

  private async values({ field, column }: Calls['values']['in']): Promise<AttributeValues> {
    const { joinColumn, valuesOf } = await import('./model/attributes');
    return column ? joinColumn(this.loaded(), column, bytesOf(column.ids)) : valuesOf(this.inFile(), field);
  }

  private async find({ q, ids }: Calls['find']['in']): Promise<Calls['find']['out']> {
    const model = this.loaded();
    if (this.spans) {
      if (isSearch(q)) throw new Error(t('Searches in braces need a server. Search for words instead.'));
      const { findInDetails } = await import('./files/find');
      return { spans: findInDetails(model, this.spans, q), complete: true };
    }
    return { spans: findAlso(model, q, ids.map((text) => bytesOf(text))), complete: ids.length > 0 };
  }

  private details(ids: string[]): SpanDetail[] {
    const spans = this.inFile();
    return this.files!.details(spans, ids);
  }

  private async read(files: InputFile[]): Promise<FileContent> {
    const [{ FileTraces }] = await Promise.all([import('./files/traces'), import('./model/extras'), import('./model/attributes'), import('../compare/match')]); // all that an open page needs offline
    this.files ??= new FileTraces();
    await this.files.read(files);
    return { traces: this.files.list(), problems: this.files.problems };
  }

  private open({ traceID, skew }: Calls['open']['in']): TraceModel {
    if (!this.files) throw new Error('No file is open.');
    const { outline, spans } = this.files.outline(traceID);
    this.outline = outline;
    this.messages = [];
    this.spans = spans;
    return this.build(skew);
  }
}
