// Conditions on attributes whose type is unknown. In a search, "500" is a text and 500 is a number.

/** The comparisons of an attribute with a value, by `=` or `!=`: with the text, and with the number or boolean that has this text. `||` joins them. */
export function comparisons(name: string, op: string, value: string): string[] {
  return [JSON.stringify(value), ...(mayBeTyped(value) ? [value] : [])].map((v) => `${name} ${op} ${v}`);
}

/** Whether a text may be that of a boolean or of a number of 64 bits. */
function mayBeTyped(text: string): boolean {
  if (/^-?\d+$/.test(text)) return String(BigInt.asIntN(64, BigInt(text))) === text;
  return /^(?:true|false|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(text);
}
