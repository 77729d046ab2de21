// Draws a tree of functions on a canvas as large as the screen shows of it; the cost follows the boxes that can be seen, not
// the profile: siblings are in order of width, so the first that is narrower than half a pixel ends its row.
import type { Func } from "../model/profile";
import type { Order, ViewTree } from "../ops/view_tree";
import { Fitter } from "./text";
import { diffFill, fillOf, type Fill, type Scheme } from "./colors";

export const ROW = 20;
const names = new Fitter();
const LEAST = 0.5, TEXT_LEAST = 22, PAD = 4;

export interface FlameView {
  tree: ViewTree;
  funcs: Func[];
  order: Order;
  zoom: number;            // a node whose width fills the canvas
  pan: number;             // moves the zoomed part, in parts of its own width; 0 none
  scale: number;           // 1: the zoomed node fills the canvas
  scrollRow: number;       // rows above the canvas (may be a fraction)
  upsideDown: boolean;     // flame instead of icicle
  selected: number;
  hovered: number;
  matches: Uint8Array | null;  // by function
  scheme: Scheme;
  dark: boolean;
  isNoise?: (node: number) => boolean;
}

export interface Box { node: number; x: number; y: number; width: number }

export interface Frame { width: number; height: number; left: number; perPixel: number }

export function frameOf(v: FlameView, width: number, height: number): Frame {
  const all = v.tree.width[v.zoom] || 1, shown = all / v.scale;
  return { width, height, left: v.tree.x[v.zoom] + v.pan * all, perPixel: width / shown };
}

const rowY = (v: FlameView, f: Frame, depth: number) => (v.upsideDown ? f.height - (depth + 1 - v.scrollRow) * ROW : (depth - v.scrollRow) * ROW);

// Visits the boxes that the canvas shows, parents first. `filler` boxes stand for siblings too narrow to be told apart.
export function visit(v: FlameView, f: Frame, onBox: (node: number, x: number, w: number, depth: number, filler: boolean) => void) {
  const { tree } = v, lastRow = v.scrollRow + f.height / ROW + 1;
  const right = f.left + f.width / f.perPixel;
  const ends: number[] = [];
  for (let i = 0; i < tree.size; ) {
    while (ends.length && ends[ends.length - 1] <= i) ends.pop();
    const w = tree.width[i] * f.perPixel, x = (tree.x[i] - f.left) * f.perPixel;
    if (tree.x[i] > right) {
      i = ends.length ? ends[ends.length - 1] : tree.size;
    } else if (x + w < 0 || tree.depth[i] > lastRow || tree.width[i] === 0) {
      i = tree.end[i];
    } else if (w < LEAST) {
      const end = ends.length ? ends[ends.length - 1] : tree.size;
      if (v.order !== "heavy") { onBox(i, x, LEAST, tree.depth[i], true); i = tree.end[i]; continue; }
      const parent = tree.parent[i], rest = (tree.x[parent] + tree.width[parent] - tree.self[parent] - tree.x[i]) * f.perPixel;
      onBox(i, x, Math.max(rest, LEAST), tree.depth[i], true);
      i = end;
    } else {
      onBox(i, x, w, tree.depth[i], false);
      ends.push(tree.end[i]);
      i++;
    }
  }
}

export function drawFlame(ctx: CanvasRenderingContext2D, width: number, height: number, v: FlameView): number {
  const f = frameOf(v, width, height), total = v.tree.width[0] || 1;
  ctx.clearRect(0, 0, width, height);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  let boxes = 0;
  visit(v, f, (node, x, w, depth, filler) => {
    const y = rowY(v, f, depth);
    if (y <= -ROW || y >= height) return;
    boxes++;
    drawBox(ctx, v, node, Math.max(x, -1), Math.min(x + w, width + 1), y, filler, total);
  });
  return boxes;
}

export function colorOf(v: FlameView, node: number, total: number): Fill {
  const { tree } = v, func = tree.func[node] < 0 ? null : v.funcs[tree.func[node]];
  if (tree.base.length > 0 && func !== null) return diffFill(changeOf(tree, node), v.isNoise?.(node) ?? false, v.dark);
  return tree.total[node] < 0 ? diffFill(-0.8, false, v.dark) : fillOf(func, v.scheme, v.dark, Math.sqrt(Math.abs(tree.self[node]) / total));
}

function drawBox(ctx: CanvasRenderingContext2D, v: FlameView, node: number, left: number, right: number, y: number, filler: boolean, total: number) {
  const { tree } = v, func = tree.func[node] < 0 ? null : v.funcs[tree.func[node]];
  const isAbove = node < v.zoom && tree.end[node] >= tree.end[v.zoom] && node !== v.zoom && v.zoom !== 0;
  const matched = v.matches !== null && func !== null && v.matches[tree.func[node]] === 1;
  const isDiff = tree.base.length > 0 && func !== null, isNoise = isDiff && (v.isNoise?.(node) ?? false);
  const color = colorOf(v, node, total);
  ctx.globalAlpha = filler || isAbove ? 0.55 : v.matches !== null && !matched ? 0.4 : 1;
  ctx.fillStyle = matched ? (v.dark ? "#a8328f" : "#f2a3e4") : filler ? (v.dark ? "#4a463f" : "#ddd7cb") : color.fill;
  const w = right - left;
  ctx.fillRect(left, y, w > 2 ? w - 0.75 : w, ROW - 1);
  if (isDiff && !filler && w > 5 && (tree.base[node] === 0) !== (tree.total[node] === 0)) hatch(ctx, left, y, w, v.dark);
  if (!filler && tree.inlined[node] && w > 4) dashTop(ctx, left, right, y, v.dark);
  if (isAbove && !filler) ctx.globalAlpha = 0.8;  // its name is still to be read
  if (matched && w > 2) outline(ctx, left, y, w, v.dark ? "#ff9cf0" : "#8a0f77", 1);
  if (!filler && func !== undefined && w >= TEXT_LEAST) label(ctx, isDiff && !isNoise ? `${signed(tree, node)}  ${nameOf(v, node)}` : nameOf(v, node), left, right, y, matched ? (v.dark ? "#fff" : "#1b1815") : color.text);
  ctx.globalAlpha = 1;
  if (node === v.selected && node > 0 && !filler) outline(ctx, left, y, w, v.dark ? "#ffffff" : "#000000", 2);
  else if (node === v.hovered && !filler) outline(ctx, left, y, w, v.dark ? "#ffffff" : "#000000", 1);
}

export function nameOf(v: { tree: ViewTree; funcs: Func[] }, node: number): string {
  const f = v.tree.func[node];
  return f < 0 ? "all" : v.funcs[f].name;
}

// "+3.2 %": the change in parts of everything.
function signed(tree: ViewTree, node: number): string {
  const share = (100 * (tree.total[node] - tree.base[node])) / Math.max(Math.abs(tree.total[0]), Math.abs(tree.base[0]), Number.MIN_VALUE);
  return `${share < 0 ? "−" : "+"}${Math.abs(share).toFixed(1)} %`;
}

function hatch(ctx: CanvasRenderingContext2D, left: number, y: number, w: number, dark: boolean) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, y, w - 1, ROW - 1);
  ctx.clip();
  ctx.strokeStyle = dark ? "rgba(255,255,255,.16)" : "rgba(0,0,0,.13)";
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  for (let x = Math.max(left, 0) - ROW; x < left + w; x += 7) { ctx.moveTo(x, y + ROW); ctx.lineTo(x + ROW, y); }
  ctx.stroke();
  ctx.restore();
}

// -1 gone .. 1 new.
export function changeOf(tree: ViewTree, node: number): number {
  const now = tree.total[node], before = tree.base[node], larger = Math.max(Math.abs(now), Math.abs(before));
  return larger === 0 ? 0 : (now - before) / larger;
}

function label(ctx: CanvasRenderingContext2D, name: string, left: number, right: number, y: number, color: string) {
  const from = Math.max(left, 0) + PAD, text = names.fit(ctx, name, right - from - PAD);
  if (text === "") return;
  ctx.fillStyle = color;
  ctx.fillText(text, from, y + ROW / 2);
}

function outline(ctx: CanvasRenderingContext2D, x: number, y: number, w: number, color: string, size: number) {
  ctx.strokeStyle = color;
  ctx.lineWidth = size;
  ctx.strokeRect(x + size / 2, y + size / 2, Math.max(w - size, 0.5), ROW - 1 - size);
}

function dashTop(ctx: CanvasRenderingContext2D, left: number, right: number, y: number, dark: boolean) {
  ctx.strokeStyle = dark ? "rgba(255,255,255,.35)" : "rgba(0,0,0,.28)";
  ctx.lineWidth = 1;
  ctx.setLineDash([3, 2]);
  ctx.beginPath();
  ctx.moveTo(left, y + 0.5);
  ctx.lineTo(right, y + 0.5);
  ctx.stroke();
  ctx.setLineDash([]);
}

// What lies under a point; null: nothing, or boxes too narrow to be told apart.
export function hit(v: FlameView, width: number, height: number, px: number, py: number): number | null {
  const f = frameOf(v, width, height), depth = v.upsideDown ? Math.floor((f.height - py) / ROW + v.scrollRow) : Math.floor(py / ROW + v.scrollRow);
  const at = f.left + px / f.perPixel, { tree } = v;
  if (depth < 0 || depth > tree.maxDepth) return null;
  let node = 0;
  while (tree.depth[node] < depth) {
    let child = node + 1, found = -1;
    for (; child < tree.end[node]; child = tree.end[child])
      if (at >= tree.x[child] && at < tree.x[child] + tree.width[child]) { found = child; break; }
    if (found < 0) return null;
    node = found;
  }
  return tree.width[node] * f.perPixel < LEAST ? null : node;
}
