// The traces of files that the user has opened.

import type { Outline, SpanDetail } from '../../api/types';
import { count } from '../../shell/format';
import { t, tn } from '../../shell/text';
import type { FileContent, FileTrace } from '../model/types';
import type { InputFile } from '../protocol';
import { parseDocument } from './detect';
import { documents } from './json';
import { maxSpans } from './limits';
import { outlineOf } from './outline';
import { readText } from './read';
import { FileError, type FileSpan } from './span';

interface Held {
  file: string;
  spans: FileSpan[];
  /** Spans by id and time, to find duplicates. */
  seen: Map<string, FileSpan[]>;
}

/** Holds the spans of files by trace. */
export class FileTraces {
  /** What the last call of `read` did not read, and why. */
  problems: FileContent['problems'] = [];
  private readonly traces = new Map<string, Held>();
  private spans = 0;

  /** Reads files. Spans before a mistake are kept. */
  async read(files: InputFile[]): Promise<void> {
    this.problems = [];
    for (const { name, blob } of files) {
      const before = this.spans;
      try {
        this.parse(name, await readText(blob));
        if (this.spans === before) throw new FileError(t('The file has no new spans.'));
      } catch (e) {
        const text = e instanceof Error ? e.message : String(e);
        const kept = this.spans - before;
        this.problems.push({ file: name, text: kept > 0 ? tn(kept, '{text} The {kept} span before that was read.', '{text} The {kept} spans before that were read.', { text, kept: count(kept) }) : text });
      }
    }
  }

  private parse(file: string, text: string): void {
    if (text.trim() === '') throw new FileError(t('The file is empty.'));
    if (text.slice(257, 262) === 'ustar' || text.startsWith('PK\x03\x04')) throw new FileError(t('The file is an archive. Unpack it, and open the files in it.'));
    let several = false;
    for (const doc of documents(text)) {
      const where = several || doc.line > 1 ? t('Line {line}', { line: doc.line }) : t('The document');
      parseDocument(doc.value, (span) => this.add(file, span), where);
      several = true;
    }
  }

  private add(file: string, span: FileSpan): void {
    let held = this.traces.get(span.traceID);
    if (!held) this.traces.set(span.traceID, (held = { file, spans: [], seen: new Map() }));
    const key = `${span.spanID} ${span.start}`;
    const similar = held.seen.get(key) ?? [];
    if (similar.length > 0 && similar.some((s) => JSON.stringify(s) === JSON.stringify(span))) return; // the same span twice
    if (this.spans >= maxSpans) throw new FileError(t('The open files have more than {max} spans, the maximum that this page holds.', { max: count(maxSpans) }));
    held.seen.set(key, [...similar, span]);
    held.spans.push(span);
    this.spans++;
  }

  /** The traces, newest first. */
  list(): FileTrace[] {
    const list = [...this.traces].map(([traceID, held]) => summary(traceID, held));
    return list.sort((a, b) => (BigInt(a.start) < BigInt(b.start) ? 1 : BigInt(a.start) > BigInt(b.start) ? -1 : 0));
  }

  /** The outline of a trace, and its spans in the order of the outline. */
  outline(traceID: string): { outline: Outline; spans: FileSpan[] } {
    const held = this.traces.get(traceID);
    if (!held) throw new FileError(t('Trace {trace} is not in the open files.', { trace: traceID }));
    return outlineOf(traceID, held.spans);
  }

  /** Spans by id. Both sides of a call can have the same id. */
  details(spans: SpanDetail[], ids: string[]): SpanDetail[] {
    const wanted = new Set(ids.map((i) => i.toLowerCase().padStart(16, '0')));
    const traceID = (spans[0] as FileSpan | undefined)?.traceID ?? '';
    return spans.filter((s) => wanted.has(s.spanID)).map((s) => ({ ...s, linkedFrom: linkedFrom(spans, traceID, s.spanID) }));
  }
}

function linkedFrom(spans: SpanDetail[], traceID: string, spanID: string): SpanDetail['linkedFrom'] {
  return spans.filter((s) => s.links.some((l) => l.traceID === traceID && l.spanID === spanID)).map((s) => ({ spanID: s.spanID, service: s.service, name: s.name }));
}

function summary(traceID: string, { file, spans }: Held): FileTrace {
  let start = 0n;
  let end = 0n;
  for (const s of spans) {
    const from = BigInt(s.start);
    if (from > 0n && (start === 0n || from < start)) start = from;
    const to = from + BigInt(Math.round(s.duration));
    if (to > end) end = to;
  }
  const ids = new Set(spans.map((s) => s.spanID));
  const root = spans.find((s) => s.parentSpanID === '') ?? spans.reduce((a, b) => (BigInt(b.start) < BigInt(a.start) ? b : a));
  return {
    traceID, file, rootService: root.service, rootName: root.name, start: String(start), duration: start > 0n ? Number(end - start) : 0, spans: spans.length,
    errors: spans.filter((s) => s.status === 'error').length, services: new Set(spans.map((s) => s.service)).size, orphans: spans.filter((s) => s.parentSpanID !== '' && !ids.has(s.parentSpanID)).length,
  };
}
