import { describe, expect, it } from "vitest";
import { dump, tiny } from "../testing/tiny";
import { exactly, type Filter } from "./filters";
import { compareDown, isNoise, scaledBase, scaleOf } from "./compare";
import { foldDown, functionTable, invert, kept, sandwich, search } from "./fold";
import type { Profile } from "../model/profile";
import type { ViewTree } from "./view_tree";

const options = (filters: Filter[] = [], collapseRecursion = false) => ({ filters, collapseRecursion, order: "heavy" as const });

const down = (p: Profile, ...filters: Filter[]) => dump(foldDown(p, p.self(0), options(filters)), p.funcs);

describe("fold", () => {
  it("joins the lines of one function and puts heavy children first", () => {
    const p = tiny(["main@1;light 2", "main@2;heavy 5", "main@3 1"]);
    expect(down(p)).toEqual(["main 1/8", "main;heavy 5/5", "main;light 2/2"]);
  });
  it("focus keeps stacks with a match, ignore drops them", () => {
    const p = tiny(["main;a;x 2", "main;b;x 5", "main;c 1"]);
    expect(down(p, { kind: "focus", pattern: "^a$" })).toEqual(["main 0/2", "main;a 0/2", "main;a;x 2/2"]);
    expect(down(p, { kind: "ignore", pattern: "x" })).toEqual(["main 0/1", "main;c 1/1"]);
    expect(down(p, { kind: "focus", pattern: "x" }, { kind: "focus", pattern: "^b$" })).toEqual(["main 0/5", "main;b 0/5", "main;b;x 5/5"]);
  });
  it("hide takes frames out, their weight goes to the caller", () => {
    const p = tiny(["main;glue;x 2", "main;x 3", "main;glue 1"]);
    expect(down(p, { kind: "hide", pattern: "^glue$" })).toEqual(["main 1/6", "main;x 5/5"]);
  });
  it("show-from cuts what lies above the first match", () => {
    const p = tiny(["main;loop;x 2", "init;x 3", "main;loop;loop 1"]);
    expect(down(p, { kind: "show-from", pattern: "^loop$" })).toEqual(["loop 0/3", "loop;x 2/2", "loop;loop 1/1"]);
  });
  it("joins recursion when asked", () => {
    const p = tiny(["f;f;f;g 2", "f;f 1"]);
    expect(dump(foldDown(p, p.self(0), options([], true)), p.funcs)).toEqual(["f 1/3", "f;g 2/2"]);
  });
  it("the weight that filters keep, where it is", () => {
    const p = tiny(["main;a;x 2", "main;b;x 5", "main;c 1"]), sum = (...filters: Filter[]) => [...kept(p, p.self(0), filters)].filter((v) => v !== 0);
    expect(sum()).toEqual([2, 5, 1]);
    expect(sum({ kind: "focus", pattern: "x" }, { kind: "ignore", pattern: "^b$" })).toEqual([2]);
    expect(sum({ kind: "hide", pattern: "x" })).toEqual([2, 5, 1]);
  });
  it("an exact filter of any name matches that name only", () => {
    for (const name of ["operator()(int) const", "a[b]", "x|y", "f<T*, 3>(...)", "back\\slash", "a-b$c^d", "/path"]) {
      const re = new RegExp(exactly(name), "u");
      expect(re.test(name)).toBe(true);
      expect(re.test(`${name}x`)).toBe(false);
    }
  });
});

describe("directions", () => {
  it("up: leaves first", () => {
    const p = tiny(["main;a;x 2", "main;b;x 5", "main 1"]), d = foldDown(p, p.self(0), options());
    expect(dump(invert(p.funcs, d, "heavy"), p.funcs)).toEqual(["x 0/7", "x;b 0/5", "x;b;main 5/5", "x;a 0/2", "x;a;main 2/2", "main 1/1"]);
  });
  it("sandwich counts nested calls once", () => {
    const p = tiny(["main;f;f;x 2", "other;f 1"]), d = foldDown(p, p.self(0), options()), f = p.funcs.findIndex((g) => g.name === "f");
    const both = sandwich(p.funcs, d, f, "heavy");
    expect(both.callees.total[0]).toBe(3);
    expect(dump(both.callees, p.funcs)).toEqual(["f 1/3", "f;f 0/2", "f;f;x 2/2"]);
    expect(dump(both.callers, p.funcs)).toEqual(["f 0/3", "f;main 2/2", "f;other 1/1"]);
  });
});

describe("functionTable", () => {
  it("a recursive function's total counts a stack once", () => {
    const p = tiny(["main;f;f;f 4", "main;g;f 1"]), rows = functionTable(foldDown(p, p.self(0), options()));
    const of = (name: string) => rows.find((r) => p.funcs[r.func].name === name)!;
    expect([of("f").self, of("f").total]).toEqual([5, 5]);
    expect([of("main").self, of("main").total]).toEqual([0, 5]);
  });
});

describe("comparison", () => {
  it("has both sides in one tree, gone and new alike", () => {
    const now = tiny(["main;same 10", "main;fresh 5"]), before = tiny(["main;same 8", "main;gone 3"]);
    const { tree, funcs } = compareDown(now, now.self(0), before, before.self(0), options());
    const rows = new Map(functionTable(tree).map((r) => [funcs[r.func].name, [r.total, r.base]]));
    expect(rows.get("same")).toEqual([10, 8]);
    expect(rows.get("fresh")).toEqual([5, 0]);
    expect(rows.get("gone")).toEqual([0, 3]);
    expect(rows.get("main")).toEqual([15, 11]);
  });
  it("in every direction", () => {
    const now = tiny(["main;a;x 10", "main;fresh 5"]), before = tiny(["main;a;x 4", "main;b;x 2", "main;gone 3"]);
    const { tree, funcs } = compareDown(now, now.self(0), before, before.self(0), options()), both = (t: ViewTree) => dump(t, funcs, (i) => `${t.base[i]}>${t.total[i]}`).sort();
    expect(both(invert(funcs, tree, "heavy"))).toEqual(["fresh 0>5", "fresh;main 0>5", "gone 3>0", "gone;main 3>0", "x 6>10", "x;a 4>10", "x;a;main 4>10", "x;b 2>0", "x;b;main 2>0"]);
    const around = sandwich(funcs, tree, funcs.findIndex((f) => f.name === "x"), "heavy", true);
    expect(both(around.callers)).toEqual(["x 6>10", "x;a 4>10", "x;a;main 4>10", "x;b 2>0", "x;b;main 2>0"]);
    expect(both(around.callees)).toEqual(["x 6>10"]);
    expect(around.callers.width[0]).toBe(6);
  });
  it("scales the base", () => {
    const now = tiny(["a 10"]), before = tiny(["a 5"]);
    const { tree } = compareDown(now, now.self(0), before, before.self(0), options());
    expect(scaledBase(tree, scaleOf(10, 5, true)).base[0]).toBe(10);
    expect([scaleOf(10, 5, false), scaleOf(10, -5, true), scaleOf(10, 0, true)]).toEqual([1, 1, 1]);
  });
  it("tells chance from change", () => {
    const noise = (largest: number) => ({ largest, nowWorth: 1, baseWorth: 1 });
    expect(isNoise(105, 100, noise(1000))).toBe(true);
    expect(isNoise(200, 100, noise(1000))).toBe(false);
    expect(isNoise(200, 100, noise(1_000_000))).toBe(true);
  });
});

describe("odd trees", () => {
  it("50,000 frames deep", () => {
    const p = tiny([`${Array.from({ length: 50_000 }, (_, i) => `f${i % 3}`).join(";")} 7`]), d = foldDown(p, p.self(0), options());
    expect(d.maxDepth).toBe(50_000);
    expect(invert(p.funcs, d, "heavy").maxDepth).toBe(50_000);
    expect(functionTable(d).every((r) => r.total === 7)).toBe(true);
  });
  it("negative values keep their sign and have a width", () => {
    const p = tiny(["a;gone -3", "a;fresh 5"]), d = foldDown(p, p.self(0), options());
    expect(d.total[0]).toBe(2);
    expect(d.width[0]).toBe(8);
  });
  it("nothing at all", () => {
    const p = tiny([]), d = foldDown(p, p.self(0), options());
    expect(d.size).toBe(1);
    expect(d.width[0]).toBe(0);
  });
  it("search counts nested matches once", () => {
    const p = tiny(["a;b;a 2", "c;a 1", "c 4"]), d = foldDown(p, p.self(0), options());
    const found = search(d, Uint8Array.from(p.funcs, (f) => (f.name === "a" ? 1 : 0)));
    expect(found.weight).toBe(3);
    expect(found.nodes.length).toBe(3);
  });
});
