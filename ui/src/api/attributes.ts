// Answers about the attributes of one trace.

/** `outline/{id}/keys`: attributes of the spans (`span.KEY`) and of their resources (`resource.KEY`), the most frequent first. */
export interface AttributeKeys {
  key: string[];
  /** Number of spans that have the key. */
  spans: number[];
  /** Keys beyond the limit are left out. */
  more: boolean;
}

/** `outline/{id}/values?key=`: the value of one attribute on each span that has it. */
export interface AttributeColumn {
  values: string[];
  /** Span ids, 8 bytes each, in base64. */
  ids: string;
  /** Index in `values` for each id. */
  value: number[];
}
