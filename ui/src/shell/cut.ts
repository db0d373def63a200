// Where a name that is too long is cut: in the middle, so that what tells it from the other names of its list stays.

/** Shorter names are not cut. */
const least = 14;

/** Characters at the end that stay, about: whole words of at least 4 and at most 14. */
const [tail, leastTail, mostTail] = [8, 4, 14];

/** Most characters before the place where names differ that stay with it, to begin with a whole word. */
const word = 16;

/** Fewest characters before a cut. */
const head = 4;

/** The index of a word that begins between two indexes, as near to another as possible, first of those after a separator; 0 if there is none. */
function wordBetween(name: string, low: number, high: number, near: number): number {
  let best = 0;
  let camel = 0;
  for (let i = Math.max(head, low); i <= high; i++) {
    if (/[\s/._:@#-]/.test(name[i - 1])) best = best && Math.abs(best - near) <= Math.abs(i - near) ? best : i;
    else if (/[a-z]/.test(name[i - 1]) && /[A-Z]/.test(name[i])) camel = camel && Math.abs(camel - near) <= Math.abs(i - near) ? camel : i;
  }
  if (best) return best > head && /[/.:]/.test(name[best - 1]) ? best - 1 : best; // the separator belongs to the word
  return camel;
}

/**
 * Index at which a name can be cut; 0 for names that are cut at their end. `differs` is the index of the first character
 * that no other name of the list has after the same beginning.
 */
export function cutAt(name: string, differs = 0): number {
  const n = name.length;
  if (n < least) return 0;
  if (differs < 2 * head) return wordBetween(name, n - mostTail, n - leastTail, n - tail);
  const from = Math.min(differs, n - leastTail);
  const at = wordBetween(name, from - word, from, from) || from;
  const low = name.charCodeAt(at);
  return low >= 0xdc00 && low < 0xe000 ? at - 1 : at; // not within a character
}

/** For the names of a list: where each can be cut, so that it differs from its neighbors in the alphabet. */
export function cutsOf(names: Iterable<string>): Map<string, number> {
  const sorted = [...new Set(names)].sort();
  const common = (a: string, b: string): number => {
    let n = 0;
    while (n < a.length && a[n] === b[n]) n++;
    return n;
  };
  const cuts = new Map<string, number>();
  let before = 0;
  for (const [i, name] of sorted.entries()) {
    const after = i + 1 < sorted.length ? common(name, sorted[i + 1]) : 0;
    cuts.set(name, cutAt(name, Math.max(before, after)));
    before = after;
  }
  return cuts;
}

/** A name in at most `most` characters, for drawings: its beginning and its end. */
export function shorten(name: string, most: number): string {
  if (name.length <= most) return name;
  const kept = most < least ? 0 : Math.min(name.length - (cutAt(name) || name.length), Math.floor(most / 2));
  return `${name.slice(0, most - 1 - kept)}…${name.slice(name.length - kept)}`;
}
