// Two profiles in one tree, and which differences are no more than the luck of sampling: as cprof diff has them. Pure.
import type { BaseTree, Func, Profile } from "../model/profile";
import { flagsOf } from "./filters";
import { nameIn, place, type FoldOptions } from "./fold";
import { TreeBuilder, type ViewTree } from "./view_tree";

const knowsModules = (p: Profile) => p.funcs.some((f) => f.module !== "");

// Functions are the same when their names are, and their modules where both sides know them.
export function compareDown(profile: Profile, self: Float64Array, other: Profile, otherSelf: Float64Array, options: FoldOptions): { tree: ViewTree; funcs: Func[] } {
  const funcs = profile.funcs.slice(), ids = new Map<string, number>(), byModule = knowsModules(profile) && knowsModules(other);
  const key = (f: Func) => (byModule ? `${f.name}\0${f.module}` : f.name);
  const same = Int32Array.from(profile.funcs, (f, i) => { const k = key(f), id = ids.get(k) ?? i; ids.set(k, id); return id; });
  const map = other.funcs.map((f) => {
    let id = ids.get(key(f));
    if (id === undefined) ids.set(key(f), (id = funcs.push(f) - 1));
    return id;
  });
  const moved = (tree: BaseTree, to: ArrayLike<number>): BaseTree => ({ ...tree, isFolded: false, func: tree.func.map((f) => (f < 0 ? f : to[f])) });
  const builder = new TreeBuilder(profile.tree.size), flags = flagsOf(funcs, options.filters);
  place(moved(profile.tree, same), self, flags, options.collapseRecursion, builder, (node, weight) => builder.add(node, weight));
  place(moved(other.tree, map), otherSelf, flags, options.collapseRecursion, builder, (node, weight) => builder.addBase(node, weight));
  return { tree: builder.finish(options.order, nameIn(funcs), true, options.byBase), funcs };
}

// What a value of the base is worth here: shares are compared when `scaled`.
export function scaleOf(now: number, before: number, scaled: boolean): number {
  const scale = before === 0 ? 0 : now / before;
  return scaled && scale > 0 ? scale : 1;
}

// `tree` with its base times `scale`.
export function scaledBase(tree: ViewTree, scale: number): ViewTree {
  return scale === 1 ? tree : { ...tree, base: tree.base.map((v) => v * scale), baseSelf: tree.baseSelf.map((v) => v * scale) };
}

export interface Noise {
  largest: number;     // the larger of both totals
  nowWorth: number;    // of one sample, 0 when nothing tells how many there were
  baseWorth: number;   // the same, scaled
}

// Samples are independent hits: a count of n comes out within sqrt(n). Up to two deviations of a difference are chance, and so
// is a thousandth of everything.
export function isNoise(now: number, before: number, noise: Noise): boolean {
  const variance = Math.abs(before) * noise.baseWorth + Math.abs(now) * noise.nowWorth;
  return Math.abs(now - before) <= Math.max(2 * Math.sqrt(variance), 0.001 * noise.largest);
}

export type Change = "more" | "less" | "new" | "gone" | "noise";
export function changeOf(now: number, before: number, noise: Noise): Change {
  if (isNoise(now, before, noise)) return "noise";
  return before === 0 ? "new" : now === 0 ? "gone" : now > before ? "more" : "less";
}
