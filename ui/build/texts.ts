// The catalog of texts: every text in the sources, for translations, and every text that is not in it.

import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseSync } from 'vite';

/** Texts by English text; for texts with a number, their forms in English. */
export type Texts = Record<string, string | { one: string; other: string }>;

/** What is wrong with a text in the sources. */
export interface Loose {
  file: string;
  text: string;
}

type Node = { type: string; start: number; end: number; [member: string]: unknown };

/** Attributes whose values users read. */
const readable = new Set(['label', 'title', 'aria-label', 'aria-description', 'aria-roledescription', 'placeholder', 'hint', 'alt', 'what', 'sentence', 'note', 'heading']);

/** Members of objects whose values users read. */
const readableMembers = new Set(['label', 'title', 'heading', 'hint', 'placeholder', 'intro']);

/** Collects the texts of all sources below a folder, and those that no translation can reach. */
export function collect(folder: string): { texts: Texts; loose: Loose[] } {
  const texts: Texts = {};
  const loose: Loose[] = [];
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/(?<!\.test)(?<!\.d)\.tsx?$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const source = readFileSync(path, 'utf8');
    const { program, errors } = parseSync(path, source);
    if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
    walk(program as unknown as Node, false, (node, code) => {
      for (const [key, forms] of Object.entries(textsOf(node))) {
        if (key in texts && typeof forms !== typeof texts[key]) loose.push({ file: relative(folder, path), text: key }); // t and tn with the same text
        texts[key] = forms;
      }
      const text = code ? null : looseIn(node);
      if (text) loose.push({ file: relative(folder, path), text });
    });
  }
  return { texts: Object.fromEntries(Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1))), loose };
}

/** Elements with code or keys, which are the same in every language. */
const codeElements = new Set(['code', 'kbd', 'pre']);

function walk(node: Node, code: boolean, visit: (node: Node, code: boolean) => void): void {
  visit(node, code);
  if (node.type === 'JSXElement') code ||= codeElements.has(nameOf((node.openingElement as Node).name as Node));
  for (const member of Object.values(node)) {
    for (const child of Array.isArray(member) ? member : [member]) {
      if (child && typeof child === 'object' && 'type' in child) walk(child as Node, code, visit);
    }
  }
}

/** Texts of a call of t or tn, or of an element Text or TextN. */
function textsOf(node: Node): Texts {
  if (node.type === 'CallExpression') {
    const name = (node.callee as Node).name;
    const [a, b, c] = (node.arguments as Node[]).map(literal);
    if (name === 't' && a !== null) return { [a]: a };
    if (name === 'tn' && b != null && c != null) return { [c]: { one: b, other: c } };
  }
  if (node.type === 'JSXOpeningElement') {
    const name = (node.name as Node).name;
    const of = attribute(node, 'of'), one = attribute(node, 'one'), other = attribute(node, 'other');
    if (name === 'Text' && of !== null) return { [of]: of };
    if (name === 'TextN' && one !== null && other !== null) return { [other]: { one, other } };
  }
  return {};
}

function attribute(element: Node, name: string): string | null {
  for (const a of element.attributes as Node[]) {
    if ((a.name as Node | undefined)?.name === name) return literal(a.value as Node);
  }
  return null;
}

/** Value of a text in the braces of an attribute or without them. */
function literal(node: Node | null | undefined): string | null {
  if (node?.type === 'JSXExpressionContainer') return literal(node.expression as Node);
  return node?.type === 'Literal' && typeof node.value === 'string' ? node.value : null;
}

/** A text that users see and that is not in the catalog, or null. */
function looseIn(node: Node): string | null {
  switch (node.type) {
    case 'JSXText': return words(String(node.value));
    case 'JSXAttribute': return readable.has(nameOf(node.name as Node)) ? words(written(node.value as Node)) : null;
    case 'Property': return readableMembers.has(nameOf(node.key as Node)) ? words(written(node.value as Node)) : null;
    case 'CallExpression':
    case 'NewExpression': return ['toast', 'announce', 'useTitle', 'FileError'].includes(String((node.callee as Node).name)) ? words(written((node.arguments as Node[])[0])) : null;
  }
  return null;
}

/** A text as it is written in the source, also one with values in it. */
function written(node: Node | null | undefined): string {
  if (node?.type === 'JSXExpressionContainer') return written(node.expression as Node);
  return node?.type === 'TemplateLiteral' ? (node.quasis as { value: { raw: string } }[]).map((q) => q.value.raw).join('{}') : literal(node) ?? '';
}

function nameOf(node: Node): string {
  return node.type === 'Literal' ? String(node.value) : String((node.name as Node | string | undefined) ?? '');
}

/** The text if it has words: two letters in a row. Names of units and products have none. */
function words(text: string): string | null {
  const trimmed = text.trim();
  return /[A-Za-z]{2}/.test(trimmed) ? trimmed : null;
}
