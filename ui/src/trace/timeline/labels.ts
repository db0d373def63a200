// Where the text beside a bar goes.

/** Side of the bar on which its label stands. */
export type Side = 'right' | 'left' | 'inside';

/** Pixels between a bar and its label. */
export const labelGap = 7;

/**
 * Places a label of `text` pixels at a bar from `left` to `right` on an axis of `width` pixels: right of the bar,
 * else left of it, else inside. `at` is the left edge of the label in pixels.
 */
export function placeLabel(left: number, right: number, text: number, width: number): { side: Side; at: number } {
  if (width - right >= text + labelGap + 1) return { side: 'right', at: right + labelGap };
  if (left >= text + labelGap + 1) return { side: 'left', at: left - labelGap - text };
  return { side: 'inside', at: Math.max(left, 0) + labelGap + 2 };
}

/** Estimated width in pixels of a text of 11 px: narrow characters are half as wide. */
export function textWidth(text: string): number {
  let width = 0;
  for (const c of text) width += c === '\u202f' ? 2.5 : ' .,'.includes(c) ? 3.6 : c === 'm' ? 9.8 : 6.6;
  return width;
}
