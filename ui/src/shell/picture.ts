// Pictures of parts of the page. They are drawn from the computed styles of its elements, because the policy of the page allows no images from data.

const margin = 16;
const lineHeight = 20;

/** Draws elements one below the other, with a sentence above and an address below, as PNG. */
export function pictureOf(parts: HTMLElement[], sentence: string, address: string): Promise<Blob> {
  const width = Math.max(...parts.map((p) => p.clientWidth), 480) + 2 * margin;
  const canvas = document.createElement('canvas');
  const c = canvas.getContext('2d')!;
  const style = getComputedStyle(document.body);
  const font = (size: number, weight: string): string => `${weight} ${size}px ${style.fontFamily}`;
  c.font = font(15, '600');
  const head = wrapped(c, sentence, width - 2 * margin);
  const top = margin + head.length * lineHeight;
  const height = parts.reduce((sum, p) => sum + p.clientHeight + margin, top + margin / 2) + lineHeight + margin / 2;
  const scale = Math.max(2, devicePixelRatio);
  canvas.width = width * scale;
  canvas.height = height * scale;
  c.scale(scale, scale);
  c.fillStyle = style.backgroundColor;
  c.fillRect(0, 0, width, height);
  c.textBaseline = 'middle';
  const write = (lines: string[], y: number): void => lines.forEach((line, i) => c.fillText(line, margin, y + (i + 0.5) * lineHeight));
  c.fillStyle = style.color;
  c.font = font(15, '600');
  write(head, margin);
  let y = top + margin / 2;
  for (const part of parts) {
    const box = part.getBoundingClientRect();
    c.save();
    c.translate(margin - box.left, y - box.top);
    draw(c, part);
    c.restore();
    y += part.clientHeight + margin;
  }
  c.globalAlpha = 0.7;
  c.font = font(11, '400');
  write([address.length > 160 ? address.slice(0, 159) + '…' : address], y - margin / 2);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no picture'))), 'image/png'));
}

/** Lines of a text that are at most `width` pixels wide, if its words are. */
export function wrapped(c: Pick<CanvasRenderingContext2D, 'measureText'>, text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const longer = lines.length > 0 ? `${lines.at(-1)} ${word}` : word;
    if (lines.length > 0 && c.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Draws an element and what is in it, in the coordinates of the viewport. */
function draw(c: CanvasRenderingContext2D, element: Element): void {
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (style.display === 'none' || style.visibility === 'hidden' || element.matches('.visually-hidden, [data-unshared]')) return;
  c.save();
  c.globalAlpha *= Number(style.opacity);
  if (element instanceof SVGGeometryElement || element instanceof SVGTextElement) drawShape(c, element, style);
  else if (element instanceof HTMLElement) {
    drawBox(c, style, box);
    for (const pseudo of ['::before', '::after']) drawPlaced(c, getComputedStyle(element, pseudo), box);
    if (element instanceof HTMLCanvasElement && element.width > 0) c.drawImage(element, box.x, box.y, box.width, box.height);
    if (style.overflowX !== 'visible') {
      c.beginPath();
      c.rect(box.x, box.y, box.width, box.height);
      c.clip();
    }
  }
  for (const child of element.childNodes) {
    if (child instanceof Element) draw(c, child);
    else if (child instanceof Text && element instanceof HTMLElement) drawText(c, child, style);
  }
  c.restore();
}

function drawBox(c: CanvasRenderingContext2D, style: CSSStyleDeclaration, box: DOMRect): void {
  c.beginPath();
  c.roundRect(box.x, box.y, box.width, box.height, parseFloat(style.borderRadius) || 0);
  c.fillStyle = style.backgroundColor;
  c.fill();
  const sides = [['Top', box.x, box.y, box.width, 0], ['Bottom', box.x, box.bottom, box.width, 0], ['Left', box.x, box.y, 0, box.height], ['Right', box.right, box.y, 0, box.height]] as const;
  for (const [side, x, y, w, h] of sides) {
    const thick = parseFloat(style[`border${side}Width`]);
    if (!thick || style[`border${side}Style`] === 'none') continue;
    const back = side === 'Bottom' || side === 'Right' ? thick : 0;
    c.fillStyle = style[`border${side}Color`];
    c.fillRect(x - (w ? 0 : back), y - (h ? 0 : back), w || thick, h || thick);
  }
}

/** Draws what a style sheet places in an element. */
function drawPlaced(c: CanvasRenderingContext2D, style: CSSStyleDeclaration, box: DOMRect): void {
  if (style.content === 'none' || style.position !== 'absolute') return;
  const [left, top, width, height] = [style.left, style.top, style.width, style.height].map(parseFloat);
  c.fillStyle = style.backgroundColor;
  c.fillRect(box.x + left, box.y + top, width, height);
}

/** Draws each line of a text where the browser has put it. */
function drawText(c: CanvasRenderingContext2D, node: Text, style: CSSStyleDeclaration): void {
  const text = node.data;
  if (!text.trim() || style.fontSize === '0px') return;
  c.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  c.fillStyle = style.color;
  c.textBaseline = 'middle';
  const range = document.createRange();
  const rectOf = (from: number, to: number): DOMRect => {
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getBoundingClientRect();
  };
  for (let from = 0, to; from < text.length; from = to) {
    const first = rectOf(from, from + 1);
    to = from + 1;
    while (to < text.length && Math.abs(rectOf(to, to + 1).top - first.top) < 4) to++;
    c.fillText(text.slice(from, to).replace(/\s+/g, ' '), first.x, first.y + first.height / 2);
  }
}

/** Draws a shape of an SVG drawing, or a text in it. */
function drawShape(c: CanvasRenderingContext2D, shape: SVGGeometryElement | SVGTextElement, style: CSSStyleDeclaration): void {
  const m = shape.getScreenCTM();
  if (!m) return;
  c.transform(m.a, m.b, m.c, m.d, m.e, m.f);
  c.globalAlpha *= Number(style.fillOpacity);
  if (shape instanceof SVGTextElement) {
    c.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    c.fillStyle = style.fill;
    c.textAlign = style.textAnchor === 'middle' ? 'center' : style.textAnchor as CanvasTextAlign;
    c.fillText(shape.textContent ?? '', shape.x.baseVal[0]?.value ?? 0, shape.y.baseVal[0]?.value ?? 0);
    return;
  }
  const path = pathOf(shape);
  c.fillStyle = style.fill;
  if (style.fill !== 'none') c.fill(path);
  c.lineWidth = parseFloat(style.strokeWidth);
  c.lineCap = style.strokeLinecap as CanvasLineCap;
  c.setLineDash(style.strokeDasharray === 'none' ? [] : style.strokeDasharray.split(/[\s,]+/).map(parseFloat));
  c.strokeStyle = style.stroke;
  if (style.stroke !== 'none') c.stroke(path);
}

function pathOf(shape: SVGGeometryElement): Path2D {
  if (shape instanceof SVGPathElement) return new Path2D(shape.getAttribute('d') ?? '');
  const path = new Path2D();
  const { x, y, width, height } = shape.getBBox();
  if (shape instanceof SVGCircleElement) path.arc(x + width / 2, y + height / 2, width / 2, 0, 2 * Math.PI);
  else path.rect(x, y, width, height);
  return path;
}
