// A parser for what pages need: where the conditions of a search are. The server has the complete one.

import { canonical, wordsOf } from './field';
import { isComparison, isOp, lex, type Token } from './lex';

/** One of the conditions that `&&` joins. Positions are indexes in the text. */
export interface Condition {
  begin: number;
  end: number;
  /** Name as written in the search; "" for a condition that has no form of its own, such as `(a || b)`. */
  name: string;
  /** `=`, `!=`, `<`, ..., `exists`, `!exists`, `not` for `!(a = b)`; a bare field is `= true`, and with `!` it is `= false`. Text in quotes alone is a condition on `text` with `contains` or `!contains`. */
  op: string;
  /** Value without quotes. */
  value: string;
  /** Kind of the token of the value. */
  kind: Token['kind'];
}

/** `{ ... }`. `conditions` is null if `||` joins them. */
export interface Spans {
  type: 'spans';
  begin: number;
  end: number;
  conditions: Condition[] | null;
}

/** Two sets joined by an operator; or a set in parentheses, without `right`. */
export interface Joined {
  type: 'joined';
  begin: number;
  end: number;
  op: string;
  left: SetNode;
  right?: SetNode;
}

export type SetNode = Spans | Joined;

/** A search. */
export interface Query {
  text: string;
  /** Null for an empty text, which selects all spans. */
  set: SetNode | null;
  /** Names of the fields in `| select(...)`. */
  select: string[];
  /** Index of the `|` before `select`, or the length of the text. */
  selectAt: number;
}

class SyntaxFailure extends Error {}

/** Parses a search; null if it is not complete or not valid. It accepts some searches that the server rejects, for example those with unknown fields. */
export function parseQuery(text: string): Query | null {
  const tokens = lex(text);
  if (tokens.length === 0) return { text, set: null, select: [], selectAt: text.length };
  try {
    return new Parser(text, tokens).query();
  } catch (e) {
    if (e instanceof SyntaxFailure) return null;
    throw e;
  }
}

const maxDepth = 64;

type Make = (name: string, op: string, value?: string, kind?: Token['kind']) => Condition;

class Parser {
  private at = 0;
  private depth = 0;

  constructor(private readonly text: string, private readonly tokens: Token[]) {}

  private peek(): Token | undefined {
    return this.tokens[this.at];
  }

  private take(): Token {
    const t = this.tokens[this.at++];
    if (!t || t.kind === 'invalid') throw new SyntaxFailure();
    return t;
  }

  private skip(op: string): boolean {
    if (!isOp(this.peek(), op)) return false;
    this.at++;
    return true;
  }

  private expect(op: string): Token {
    const t = this.take();
    if (!isOp(t, op)) throw new SyntaxFailure();
    return t;
  }

  private written(t: Token): string {
    return this.text.slice(t.begin, t.end);
  }

  private nested<T>(parse: () => T): T {
    if (++this.depth > maxDepth) throw new SyntaxFailure();
    const result = parse();
    this.depth--;
    return result;
  }

  query(): Query {
    const set = this.set();
    const bar = this.peek();
    if (!bar) return { text: this.text, set, select: [], selectAt: this.text.length };
    this.expect('|');
    const select = this.selection();
    if (this.peek()) throw new SyntaxFailure();
    return { text: this.text, set, select, selectAt: bar.begin };
  }

  private selection(): string[] {
    if (this.take().text !== 'select') throw new SyntaxFailure();
    this.expect('(');
    const names = [this.field()];
    while (this.skip(',')) names.push(this.field());
    this.expect(')');
    return names;
  }

  private field(): string {
    const t = this.take();
    if (t.kind !== 'word') throw new SyntaxFailure();
    return this.written(t);
  }

  private set(): SetNode {
    return this.join(['||', '&&'], () => this.join(relations, () => this.spans()));
  }

  private join(ops: string[], part: () => SetNode): SetNode {
    let left = part();
    for (;;) {
      const op = ops.find((o) => this.skip(o));
      if (!op) return left;
      const right = part();
      left = { type: 'joined', op, left, right, begin: left.begin, end: right.end };
    }
  }

  private spans(): SetNode {
    const open = this.take();
    if (isOp(open, '(')) {
      const left = this.nested(() => this.set());
      return { type: 'joined', op: '()', left, begin: open.begin, end: this.expect(')').end };
    }
    if (!isOp(open, '{')) throw new SyntaxFailure();
    if (isOp(this.peek(), '}')) return { type: 'spans', begin: open.begin, end: this.take().end, conditions: [] };
    const { all, or } = this.terms();
    return { type: 'spans', begin: open.begin, end: this.expect('}').end, conditions: or ? null : all };
  }

  /** Conditions, and whether `||` joins some of them. */
  private terms(): { all: Condition[]; or: boolean } {
    const all = [this.term()];
    let or = false;
    for (;;) {
      if (this.skip('||')) or = true;
      else if (!this.skip('&&')) return { all, or };
      all.push(this.term());
    }
  }

  /** A condition. One that calculates or compares two fields has no form of its own. */
  private term(): Condition {
    const first = this.peek();
    const make: Make = (name, op, value = '', kind = 'word') => ({ begin: first!.begin, end: this.tokens[this.at - 1].end, name, op, value, kind });
    const simple = this.simple(make);
    if (!this.calculates()) return simple;
    while (this.calculates()) {
      this.at++;
      this.operand();
    }
    return make('', '');
  }

  private calculates(): boolean {
    const t = this.peek();
    return isComparison(t) || (t?.kind === 'operator' && /^[-+*/%^]$/.test(t.text));
  }

  private operand(): void {
    while (this.skip('!') || this.skip('-'));
    const t = this.take();
    if (isOp(t, '(')) {
      this.nested(() => this.terms());
      this.expect(')');
    } else if (t.kind === 'operator') throw new SyntaxFailure();
  }

  private simple(make: Make): Condition {
    let negations = 0;
    while (this.skip('!')) negations++;
    if (isOp(this.peek(), '-')) {
      this.operand();
      return make('', '');
    }
    const t = this.take();
    if (isOp(t, '(')) {
      const { all: [one, two, more], or } = this.nested(() => this.terms());
      this.expect(')');
      // (a = "1" || a = 1) is one condition on a value of any type.
      const anyType = two && !more && or && /^!?=$/.test(one.op) && one.kind === 'quoted' && two.kind !== 'quoted' && one.name === two.name && one.op === two.op && one.value === two.value;
      if (negations === 1 && one.op === '=' && (!two || anyType)) return make(one.name, 'not', one.value, one.kind);
      return negations === 0 && anyType ? make(one.name, one.op, one.value, one.kind) : make('', '');
    }
    const no = negations % 2 === 1;
    if (t.kind === 'word' && t.text === 'exists' && this.skip('(')) {
      const name = this.field();
      this.expect(')');
      return make(name, no ? '!exists' : 'exists');
    }
    if (t.kind === 'operator' || (negations && isComparison(this.peek()))) throw new SyntaxFailure();
    if (this.calculates()) return this.comparison(t, make) ?? make('', '');
    if (t.kind === 'quoted' && t.text) return make('text', no ? '!contains' : 'contains', t.text, 'quoted');
    if (t.kind !== 'word') throw new SyntaxFailure();
    return t.text === 'true' || t.text === 'false' ? make('', '') : make(this.written(t), '=', no ? 'false' : 'true');
  }

  /** A comparison of a field with a value; null for another one, after whose left side it stops. */
  private comparison(left: Token, make: Make): Condition | null {
    const at = this.at;
    const op = this.take().text;
    const minus = this.skip('-') ? '-' : '';
    const right = this.take();
    const swapped = isValue(left, right);
    const [field, value, by] = swapped ? [right, left, mirrored[op]] : [left, right, op];
    if (!by || right.kind === 'operator' || this.calculates() || field.kind !== 'word' || isValue(field, value) || !isValue(value, field)) {
      this.at = at;
      return null;
    }
    if (value.kind === 'word' && value.text === 'nil') return make(this.written(field), by === '=' ? '!exists' : 'exists');
    return make(this.written(field), by, minus + value.text, value.kind);
  }
}

const relations = ['>>', '>', '<<', '<', '~'].flatMap((r) => [`!${r}`, `&${r}`, r]);
const mirrored: Record<string, string | undefined> = { '=': '=', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' };
const constants = new Set(['true', 'false', 'nil']);

/** Whether a token is a value next to the field `other`. `error` is a field, but next to `status` it is a value. */
function isValue(t: Token, other: Token): boolean {
  return t.kind !== 'word' || constants.has(t.text) || (other.kind === 'word' && wordsOf(other.text).includes(t.text));
}

/** Whether a condition compares a field, whatever its spelling. */
export function isOn(c: Condition, field: string): boolean {
  return c.name !== '' && canonical(c.name) === canonical(field);
}
