// Finds out the format of a JSON document and reads its spans.

import { t } from '../../shell/text';
import { jaegerTraces, parseJaeger } from './jaeger';
import { parseOTLP, resourceSpans } from './otlp';
import { FileError, isObject, objects, type FileSpan, type Json } from './span';
import { isZipkin, parseZipkin } from './zipkin';

/** Reads the spans of a document. `where` names its place. Throws a FileError if the format is not known. */
export function parseDocument(doc: unknown, take: (span: FileSpan) => void, where: string): void {
  const valid = (span: FileSpan): void => {
    if (!span.traceID) throw new FileError(t('{where}: span {span} has no trace ID.', { where, span: span.spanID || t('without ID') }));
    if (!span.spanID) throw new FileError(t('{where}: a span of trace {trace} has no span ID.', { where, trace: span.traceID }));
    take(span);
  };
  if (Array.isArray(doc)) {
    for (const item of doc.flatMap((x: unknown) => (Array.isArray(x) ? objects(x) : isObject(x) ? [x] : []))) parseObject(item, valid, where);
    if (doc.length > 0 && !doc.some((x) => typeof x === 'object' && x !== null)) throw unknownFormat(where, t('a list of values'));
  } else if (isObject(doc)) parseObject(doc, valid, where);
  else throw unknownFormat(where, t('a single value'));
}

function parseObject(doc: Json, take: (span: FileSpan) => void, where: string): void {
  const otlp = resourceSpans(doc);
  if (otlp) return parseOTLP(otlp, take, where);
  const jaeger = jaegerTraces(doc);
  if (jaeger) return jaeger.forEach((trace) => parseJaeger(trace, take, where));
  if (isZipkin(doc)) return parseZipkin(doc, take, where);
  throw unknownFormat(where, t('an object with {keys}', { keys: Object.keys(doc).slice(0, 4).map((k) => `“${k.slice(0, 30)}”`).join(', ') || t('no members') }));
}

function unknownFormat(where: string, what: string): FileError {
  return new FileError(t('{where}: {what} is not a Jaeger, OTLP or Zipkin trace.', { where, what }));
}
