// Code generated from pipeline/tracestore/fields.go by go test ./test/repo -update; DO NOT EDIT.

/** A field that is not an attribute. */
export interface FieldEntry {
  name: string;
  /** Other names. */
  aliases: string[];
  type: 'text' | 'word' | 'duration' | 'number' | 'boolean';
  /** All values of a field that has few. */
  words: string[];
}

/** All fields that are not attributes. */
export const fields: FieldEntry[] = [
  { name: 'service', aliases: ['service.name', '.service.name', 'resource.service.name'], type: 'text', words: [] },
  { name: 'name', aliases: ['span:name'], type: 'text', words: [] },
  { name: 'kind', aliases: ['span:kind'], type: 'word', words: ['server', 'client', 'producer', 'consumer', 'internal', 'unspecified'] },
  { name: 'status', aliases: ['span:status'], type: 'word', words: ['error', 'ok', 'unset'] },
  { name: 'statusMessage', aliases: ['span:statusMessage'], type: 'text', words: [] },
  { name: 'duration', aliases: ['span:duration'], type: 'duration', words: [] },
  { name: 'instrumentation:name', aliases: [], type: 'text', words: [] },
  { name: 'instrumentation:version', aliases: [], type: 'text', words: [] },
  { name: 'event:name', aliases: [], type: 'text', words: [] },
  { name: 'span:parentID', aliases: [], type: 'text', words: [] },
  { name: 'text', aliases: [], type: 'text', words: [] },
  { name: 'trace.duration', aliases: ['trace:duration', 'traceDuration'], type: 'duration', words: [] },
  { name: 'trace.rootService', aliases: ['trace:rootService', 'rootServiceName'], type: 'text', words: [] },
  { name: 'trace.rootName', aliases: ['trace:rootName', 'rootName'], type: 'text', words: [] },
  { name: 'span:childCount', aliases: ['childCount'], type: 'number', words: [] },
  { name: 'errorGroup', aliases: [], type: 'text', words: [] },
  { name: 'trace:id', aliases: [], type: 'text', words: [] },
  { name: 'span:id', aliases: [], type: 'text', words: [] },
  { name: 'nestedSetLeft', aliases: [], type: 'number', words: [] },
  { name: 'nestedSetRight', aliases: [], type: 'number', words: [] },
  { name: 'nestedSetParent', aliases: [], type: 'number', words: [] },
  { name: 'event:timeSinceStart', aliases: [], type: 'duration', words: [] },
  { name: 'link:traceID', aliases: [], type: 'text', words: [] },
  { name: 'link:spanID', aliases: [], type: 'text', words: [] },
  { name: 'error', aliases: [], type: 'boolean', words: [] },
  { name: 'root', aliases: [], type: 'boolean', words: [] },
];

/** Scopes of attributes, with the dot after them. */
export const scopes = ['.', 'span.', 'resource.', 'instrumentation.', 'event.', 'link.'] as const;
