// From the profile's tree of lines to a tree of functions: filters, direction, sandwich, recursion, comparison. Pure.
import type { BaseTree, Func, Profile } from "../model/profile";
import { flagsOf, type Filter, type FuncFlags } from "./filters";
import { TreeBuilder, type Order, type ViewTree } from "./view_tree";

export interface FoldOptions {
  filters: Filter[];
  collapseRecursion: boolean;
  order: Order;
  byBase?: boolean;  // of a comparison: as wide as the base has it
}

// Calls on every node that has weight and that the filters keep, with the place of its stack in `builder` (0: nothing of the
// stack is shown).
export function place(tree: BaseTree, self: Float64Array, flags: FuncFlags, collapse: boolean, builder: TreeBuilder, onWeight: (place: number, weight: number, node: number) => void) {
  const n = tree.size, at = new Int32Array(n), started = new Uint8Array(n), ignored = new Uint8Array(n), any = new Uint8Array(n);
  const focus = flags.focus.map(() => new Uint8Array(n)), used = nodesInUse(tree, self);
  // Nothing is joined where no frame goes and the tree has a node for each path of functions already.
  const isPlain = tree.isFolded && !collapse && !flags.from && !flags.hasHidden && builder.size === 1;
  started[0] = flags.from ? 0 : 1;
  for (let i = 0; i < n; i++) {
    if (!used[i]) continue;
    const p = tree.parent[i], f = tree.func[i];
    if (p >= 0) {
      ignored[i] = ignored[p] | flags.ignore[f];
      started[i] = started[p] | (flags.from && !flags.hide[f] ? flags.from[f] : 0);
      for (let k = 0; k < focus.length; k++) focus[k][i] = focus[k][p] | flags.focus[k][f];
      const isLeft = started[i] === 1 && !flags.hide[f];
      any[i] = any[p] | (isLeft && !flags.mark[f] ? 1 : 0);
      at[i] = isLeft && !ignored[i] && !(collapse && builder.funcOf(at[p]) === f) ? (isPlain ? builder.append(at[p], f, tree.inlined[i]) : builder.child(at[p], f, tree.inlined[i])) : at[p];
    }
    if (self[i] === 0 || ignored[i] || !any[i] || focus.some((flag) => !flag[i])) continue;
    onWeight(at[i], self[i], i);
  }
}

function nodesInUse(tree: BaseTree, self: Float64Array): Uint8Array {
  const used = new Uint8Array(tree.size);
  used[0] = 1;
  for (let i = tree.size - 1; i > 0; i--) {
    if (self[i] !== 0) used[i] = 1;
    if (used[i]) used[tree.parent[i]] = 1;
  }
  return used;
}

// Without the branches that carry nothing (a focus leaves many).
function withoutEmpty(builder: TreeBuilder): TreeBuilder {
  const keep = new Uint8Array(builder.size);
  for (let i = builder.size - 1; i > 0; i--) {
    if (builder.selfOf(i) !== 0) keep[i] = 1;
    if (keep[i]) keep[builder.parentOf(i)] = 1;
  }
  if (keep.every((k) => k === 1)) return builder;
  const out = new TreeBuilder(), map = new Int32Array(builder.size);
  for (let i = 1; i < builder.size; i++) {
    if (!keep[i]) continue;
    map[i] = out.child(map[builder.parentOf(i)], builder.funcOf(i), builder.inlinedOf(i));
    out.add(map[i], builder.selfOf(i));
  }
  out.add(0, builder.selfOf(0));
  return out;
}

export function foldDown(profile: Profile, self: Float64Array, options: FoldOptions): ViewTree {
  const builder = new TreeBuilder(profile.tree.size), flags = flagsOf(profile.funcs, options.filters);
  place(profile.tree, self, flags, options.collapseRecursion, builder, (node, weight) => builder.add(node, weight));
  return (options.filters.length ? withoutEmpty(builder) : builder).finish(options.order, nameIn(profile.funcs), false);
}

// What of each node's own weight the filters keep.
export function kept(profile: Profile, self: Float64Array, filters: Filter[]): Float64Array {
  if (filters.length === 0) return self;
  const out = new Float64Array(self.length);
  place(profile.tree, self, flagsOf(profile.funcs, filters), false, new TreeBuilder(profile.tree.size), (_, weight, node) => { out[node] = weight; });
  return out;
}

export const nameIn = (funcs: Func[]) => (f: number) => (f < 0 ? "" : funcs[f].name);

// Leaves first: who spends, and below it who called. Both sides of a comparison go along.
export function invert(funcs: Func[], down: ViewTree, order: Order, byBase = false): ViewTree {
  const builder = new TreeBuilder(), isDiff = down.base.length > 0;
  for (let i = 0; i < down.size; i++) {
    const base = isDiff ? down.baseSelf[i] : 0;
    if (down.self[i] === 0 && base === 0) continue;
    let node = 0;
    for (let j = i; j > 0; j = down.parent[j]) node = builder.child(node, down.func[j], down.inlined[j]);
    builder.add(node, down.self[i]);
    builder.addBase(node, base);
  }
  return builder.finish(order, nameIn(funcs), isDiff, byBase);
}

export interface Sandwich { callers: ViewTree; callees: ViewTree }

// Everything around one function. Of nested calls of it the outermost counts, so nothing is counted twice.
export function sandwich(funcs: Func[], down: ViewTree, func: number, order: Order, byBase = false): Sandwich {
  const callers = new TreeBuilder(), callees = new TreeBuilder(), isDiff = down.base.length > 0;
  for (let i = 1; i < down.size; i++) {
    if (down.func[i] !== func) continue;
    const end = down.end[i];
    let caller = callers.child(0, func, 0);
    for (let j = down.parent[i]; j > 0; j = down.parent[j]) caller = callers.child(caller, down.func[j], down.inlined[j]);
    callers.add(caller, down.total[i]);
    if (isDiff) callers.addBase(caller, down.base[i]);
    const at = new Int32Array(end - i);
    for (let j = i; j < end; j++) {
      at[j - i] = callees.child(j === i ? 0 : at[down.parent[j] - i], down.func[j], down.inlined[j]);
      callees.add(at[j - i], down.self[j]);
      if (isDiff) callees.addBase(at[j - i], down.baseSelf[j]);
    }
    i = end - 1;
  }
  return { callers: callers.finish(order, nameIn(funcs), isDiff, byBase), callees: callees.finish(order, nameIn(funcs), isDiff, byBase) };
}

export interface FuncRow { func: number; self: number; total: number; base: number; baseSelf: number; calls: number }

// One row a function. A function's total counts every stack once, however often the function is in it.
export function functionTable(down: ViewTree): FuncRow[] {
  let functions = 0;
  for (let i = 1; i < down.size; i++) if (down.func[i] >= functions) functions = down.func[i] + 1;
  const self = new Float64Array(functions), total = new Float64Array(functions), calls = new Int32Array(functions), nested = new Int32Array(functions);
  const isDiff = down.base.length > 0, base = new Float64Array(isDiff ? functions : 0), baseSelf = new Float64Array(isDiff ? functions : 0);
  const closeAt = new Int32Array(down.maxDepth + 1), openFunc = new Int32Array(down.maxDepth + 1);
  let open = 0;
  for (let i = 1; i < down.size; i++) {
    while (open > 0 && closeAt[open - 1] <= i) nested[openFunc[--open]]--;
    const f = down.func[i], isOutermost = nested[f]++ === 0;
    self[f] += down.self[i];
    if (isOutermost) total[f] += down.total[i];
    if (isDiff) baseSelf[f] += down.baseSelf[i];
    if (isDiff && isOutermost) base[f] += down.base[i];
    calls[f]++;
    closeAt[open] = down.end[i];
    openFunc[open++] = f;
  }
  const rows: FuncRow[] = [];
  for (let f = 0; f < functions; f++)
    if (calls[f] > 0) rows.push({ func: f, self: self[f], total: total[f], base: isDiff ? base[f] : 0, baseSelf: isDiff ? baseSelf[f] : 0, calls: calls[f] });
  return rows;
}

// All nodes of the tree that a search finds, and what they weigh together: nested matches count once.
export function search(tree: ViewTree, matches: Uint8Array): { nodes: Int32Array; weight: number } {
  const found: number[] = [];
  let weight = 0, covered = 0;
  for (let i = 1; i < tree.size; i++) {
    if (!matches[tree.func[i]]) continue;
    found.push(i);
    if (i < covered) continue;
    weight += tree.width[i];
    covered = tree.end[i];
  }
  return { nodes: Int32Array.from(found), weight };
}
