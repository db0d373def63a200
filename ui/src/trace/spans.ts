// Lists of spans: ascending indexes.

/** Spans that are in both lists. */
export function intersect(a: Int32Array, b: Int32Array): Int32Array {
  const inB = new Set(b);
  return a.filter((span) => inB.has(span));
}

/** Position of a span in a list, from 1; 0 if it is not in the list. */
export function position(list: Int32Array, span: number): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < span) low = middle + 1;
    else high = middle;
  }
  return list[low] === span ? low + 1 : 0;
}
