// Trees of functions as they are drawn: pre-order, children in a chosen order, with their place on the x axis. Built node by
// node, then finished. No recursion: stacks may be 50,000 frames deep.
import { PairTable } from "./pairs";

export type Order = "heavy" | "name" | "time";

export interface ViewTree {
  size: number;
  func: Int32Array;      // -1: the root
  parent: Int32Array;
  depth: Int32Array;     // 0: the root
  end: Int32Array;       // one past the last node of its subtree
  self: Float64Array;
  total: Float64Array;   // signed
  width: Float64Array;   // of what is drawn: sums of absolute values
  x: Float64Array;       // from the left, in the unit of width
  base: Float64Array;    // the total in the profile that this one is compared with; empty: no comparison
  baseSelf: Float64Array;
  inlined: Uint8Array;   // wherever it was seen
  maxDepth: number;
}

export class TreeBuilder {
  private count = 1;
  private func: Int32Array;
  private parent: Int32Array;
  private self: Float64Array;
  private baseSelf: Float64Array;
  private inlined: Uint8Array;
  private pairs?: PairTable;  // unless every node is appended

  // expected: about how many nodes there will be.
  constructor(expected = 1024) {
    const room = Math.max(16, expected);
    this.func = new Int32Array(room);
    this.parent = new Int32Array(room);
    this.self = new Float64Array(room);
    this.baseSelf = new Float64Array(room);
    this.inlined = new Uint8Array(room);
    this.func[0] = this.parent[0] = -1;
  }

  child(parent: number, func: number, inlined: number): number {
    this.pairs ??= new PairTable(this.func.length);
    const row = this.pairs.findOrAdd(parent, func, this.count);
    if (row === this.count) this.append(parent, func, inlined);
    else if (inlined === 0) this.inlined[row] = 0;
    return row;
  }

  // A child of a parent that has none of this function.
  append(parent: number, func: number, inlined: number): number {
    const fresh = this.count;
    if (fresh === this.func.length) this.grow();
    this.func[fresh] = func;
    this.parent[fresh] = parent;
    this.inlined[fresh] = inlined;
    this.count++;
    return fresh;
  }

  private grow() {
    const room = 2 * this.func.length, moved = <T extends Int32Array | Float64Array | Uint8Array>(from: T, to: T) => { to.set(from); return to; };
    this.func = moved(this.func, new Int32Array(room));
    this.parent = moved(this.parent, new Int32Array(room));
    this.self = moved(this.self, new Float64Array(room));
    this.baseSelf = moved(this.baseSelf, new Float64Array(room));
    this.inlined = moved(this.inlined, new Uint8Array(room));
  }

  add(node: number, weight: number) { this.self[node] += weight; }
  addBase(node: number, weight: number) { this.baseSelf[node] += weight; }

  get size(): number { return this.count; }
  funcOf(node: number): number { return this.func[node]; }
  parentOf(node: number): number { return this.parent[node]; }
  selfOf(node: number): number { return this.self[node]; }
  inlinedOf(node: number): number { return this.inlined[node]; }

  // byBase: boxes are as wide as the base has them, so that what is gone can be seen.
  finish(order: Order, nameOf: (func: number) => string, isDiff: boolean, byBase = false): ViewTree {
    const n = this.count, total = this.self.slice(0, n), width = new Float64Array(n), base = this.baseSelf.slice(0, n);
    for (let i = 0; i < n; i++) width[i] = Math.abs(byBase ? this.baseSelf[i] : this.self[i]);
    for (let i = n - 1; i > 0; i--) {
      const p = this.parent[i];
      total[p] += total[i];
      width[p] += width[i];
      base[p] += base[i];
    }
    const sequence = this.preOrder(order, width, nameOf);
    return this.laidOut(sequence, total, width, base, isDiff);
  }

  // Old numbers in their new order. Children lie side by side by counting sort over parents.
  private preOrder(order: Order, width: Float64Array, nameOf: (func: number) => string): Int32Array {
    const n = this.count, first = new Int32Array(n + 1), children = new Int32Array(Math.max(0, n - 1));
    for (let i = 1; i < n; i++) first[this.parent[i] + 1]++;
    for (let i = 0; i < n; i++) first[i + 1] += first[i];
    const next = first.slice();
    for (let i = 1; i < n; i++) children[next[this.parent[i]]++] = i;
    const before = order === "heavy" ? (a: number, b: number) => width[b] - width[a] || a - b
      : order === "name" ? (a: number, b: number) => compare(nameOf(this.func[a]), nameOf(this.func[b])) || a - b : (a: number, b: number) => a - b;
    const sequence = new Int32Array(n), open: number[] = [0];
    let at = 0;
    while (open.length) {
      const node = open.pop()!;
      sequence[at++] = node;
      const own = children.subarray(first[node], first[node + 1]);
      if (own.length > 1) own.sort(before);
      for (let i = own.length - 1; i >= 0; i--) open.push(own[i]);
    }
    return sequence;
  }

  private laidOut(sequence: Int32Array, total: Float64Array, width: Float64Array, base: Float64Array, isDiff: boolean): ViewTree {
    const n = sequence.length, place = new Int32Array(n);
    const t: ViewTree = {
      size: n, func: new Int32Array(n), parent: new Int32Array(n), depth: new Int32Array(n), end: new Int32Array(n), self: new Float64Array(n),
      total: new Float64Array(n), width: new Float64Array(n), x: new Float64Array(n), base: new Float64Array(isDiff ? n : 0),
      baseSelf: new Float64Array(isDiff ? n : 0), inlined: new Uint8Array(n), maxDepth: 0,
    };
    const nextX = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const old = sequence[i], p = this.parent[old] < 0 ? -1 : place[this.parent[old]];
      place[old] = i;
      t.func[i] = this.func[old];
      t.parent[i] = p;
      t.self[i] = this.self[old];
      t.total[i] = total[old];
      t.width[i] = width[old];
      t.inlined[i] = this.inlined[old];
      if (isDiff) { t.base[i] = base[old]; t.baseSelf[i] = this.baseSelf[old]; }
      if (p < 0) continue;
      t.depth[i] = t.depth[p] + 1;
      if (t.depth[i] > t.maxDepth) t.maxDepth = t.depth[i];
      t.x[i] = nextX[i] = nextX[p];
      nextX[p] += width[old];
    }
    t.end.fill(0);
    for (let i = n - 1; i >= 0; i--) {
      if (t.end[i] === 0) t.end[i] = i + 1;
      const p = t.parent[i];
      if (p >= 0 && t.end[p] < t.end[i]) t.end[p] = t.end[i];
    }
    return t;
  }
}

function compare(a: string, b: string): number { return a < b ? -1 : a > b ? 1 : 0; }
