// Conditions on attributes whose type is unknown. In a search, "500" is a text and 500 is a number.

/** The comparisons of an attribute with a value, by `=` or `!=`: with the text, and with the number or boolean that has this text. `||` joins them. */
export function comparisons(name: string, op: string, value: string): string[] {
  return [JSON.stringify(value), ...(mayBeTyped(value) ? [value] : [])].map((v) => `${name} ${op} ${v}`);
}

/** Whether a text is that of a boolean or of a number, as the server writes it: `1e-07`, not `0.50`. */
function mayBeTyped(text: string): boolean {
  if (/^-?\d+$/.test(text)) return String(BigInt.asIntN(64, BigInt(text))) === text;
  return text === 'true' || text === 'false' || (/[.e]/.test(text) && String(Number(text)).replace(/e-(\d)$/, 'e-0$1') === text);
}
