// The flame graph that is shown as an SVG picture: whole, with the names and values of its boxes as titles. Pure.
import { colorOf, frameOf, nameOf, ROW, visit, type FlameView } from "./flame";

const WIDTH = 1200, PER_CHARACTER = 7, PAD = 4;

// XML holds no control characters, and no halves of pairs.
const escaped = (text: string) => text.replace(/[\u0000-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
  .replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);

// describe: what a box costs, in words.
export function flameSvg(v: FlameView, describe: (node: number) => string): string {
  const boxes: string[] = [], total = v.tree.width[0] || 1, whole = { ...v, scale: 1, pan: 0, scrollRow: 0 };
  let rows = 1;
  const f = frameOf(whole, WIDTH, 1e9), texts: [node: number, x: number, w: number, depth: number][] = [];
  visit(whole, f, (node, x, w, depth, filler) => {
    if (filler || x + w <= 0 || x >= WIDTH) return;
    rows = Math.max(rows, depth + 1);
    texts.push([node, Math.max(0, x), Math.min(WIDTH, x + w) - Math.max(0, x), depth]);
  });
  for (const [node, x, w, depth] of texts) {
    const y = (v.upsideDown ? rows - 1 - depth : depth) * ROW, color = colorOf(v, node, total), name = nameOf(v, node), room = Math.floor((w - 2 * PAD) / PER_CHARACTER);
    const label = room < 3 ? "" : name.length <= room ? name : `${name.slice(0, room - 1)}…`;
    boxes.push(`<g><title>${escaped(`${name.slice(0, 2000)}: ${describe(node)}`)}</title><rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.1, w - (w > 2 ? 0.75 : 0)).toFixed(2)}" height="${ROW - 1}" fill="${color.fill}"/>`
      + `${label && `<text x="${(x + PAD).toFixed(2)}" y="${y + 14}" fill="${color.text}">${escaped(label)}</text>`}</g>`);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${rows * ROW}" viewBox="0 0 ${WIDTH} ${rows * ROW}" font-family="system-ui, sans-serif" font-size="12">\n${boxes.join("\n")}\n</svg>\n`;
}
