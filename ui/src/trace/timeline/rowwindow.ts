// Which rows are visible, and where they are in the scrolled area.

/** Browsers limit the height of an element; above it, scroll positions are mapped by ratio. */
export const maxHeight = 12_000_000;

/** Measures of a list of rows of equal height, in pixels. */
export interface List {
  count: number;
  height: number;
  /** Height of the visible part. */
  view: number;
}

/** Height of the scrolled area in pixels. */
export function areaHeight(rows: List): number {
  return Math.min(rows.count * rows.height, maxHeight);
}

/** Pixels of rows for each pixel that is scrolled; 1 unless there are very many rows. */
function ratio(rows: List): number {
  const full = rows.count * rows.height;
  const area = areaHeight(rows);
  return full > area && area > rows.view ? (full - rows.view) / (area - rows.view) : 1;
}

/** Rows `first` to `last` (exclusive) are visible; row i is at `shift + i * height` in the scrolled area. */
export interface Visible {
  first: number;
  last: number;
  shift: number;
}

/** The visible rows at a scroll position, with `extra` rows above and below. */
export function windowAt(rows: List, scrollTop: number, extra: number): Visible {
  const top = Math.max(0, scrollTop);
  const virtual = top * ratio(rows);
  const first = Math.max(0, Math.floor(virtual / rows.height) - extra);
  const last = Math.min(rows.count, Math.ceil((virtual + rows.view) / rows.height) + extra);
  return { first: Math.min(first, last), last, shift: top - virtual };
}

/**
 * The scroll position that shows a row, or the current one if the row is visible below `covered` pixels at the top.
 * `center` moves the row to the middle if it is not visible.
 */
export function scrollToRow(rows: List, scrollTop: number, row: number, covered: number, center = false): number {
  const r = ratio(rows);
  const virtual = scrollTop * r;
  const y = row * rows.height;
  if (y >= virtual + covered && y + rows.height <= virtual + rows.view) return scrollTop;
  let target = y < virtual + covered ? y - covered : y + rows.height - rows.view;
  if (center) target = y - Math.floor((rows.view - rows.height) / 2 / rows.height) * rows.height;
  const most = Math.max(0, rows.count * rows.height - rows.view);
  return Math.min(Math.max(0, target), most) / r;
}

/** The row at a scroll position, where rows scroll under `covered` pixels. */
export function rowAt(rows: List, scrollTop: number, covered: number): number {
  return Math.min(Math.max(0, rows.count - 1), Math.floor((Math.max(0, scrollTop) * ratio(rows) + covered) / rows.height));
}
