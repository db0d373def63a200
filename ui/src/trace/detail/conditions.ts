// What is done with the values of attributes.

/** Where an attribute is, as the search language names it. */
export type AttributeScope = 'span' | 'resource' | 'instrumentation' | 'event' | 'link';

/** The address of a value that is a web page, or "". Only http and https are followed. */
export function linkOf(value: string): string {
  if (!/^https?:\/\/[^\s<>"]+$/i.test(value)) return '';
  try {
    return new URL(value).href;
  } catch {
    return '';
  }
}
