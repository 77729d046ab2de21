// The same cases as src/analyze/view_vectors_test.cc: what cprof's own views show and what the page shows is one thing.
import { describe, expect, it } from "vitest";
import vectors from "../../../tests/vectors/views.json";
import { dump, tiny, type Places } from "../testing/tiny";
import { changeOf, compareDown, scaledBase, scaleOf } from "./compare";
import { isCutMark, toRegExp, type Filter, type FilterKind } from "./filters";
import { foldDown, functionTable, invert, search } from "./fold";
import { neighboursOf } from "./neighbours";

interface Case {
  title: string; stacks: string[]; places: Places; filters: [FilterKind, string][]; total: number; width: number;
  down: string[]; up: string[]; joined: string[]; table: [string, number, number][];
  neighbours?: { of: string; callers: [string, number][]; callees: [string, number][] };
  search?: { pattern: string; width: number };
  before?: string[]; diff?: { scaled: boolean; rows: [string, "self" | "total", number, number, string][] };
}
const cases = vectors as unknown as Case[];

// Branches of nothing at all may be left out or not.
const shown = (lines: string[]) => lines.filter((line) => !line.endsWith(" 0/0")).sort();

describe.each(cases)("$title", (c) => {
  const p = tiny(c.stacks, { places: c.places }), filters: Filter[] = c.filters.map(([kind, pattern]) => ({ kind, pattern }));
  const options = (collapseRecursion: boolean) => ({ filters, collapseRecursion, order: "heavy" as const });
  const d = foldDown(p, p.self(0), options(false)), names = <T>(list: [number, T][]) => list.map(([f, v]) => [p.funcs[f].name, v]).sort();

  it("trees", () => {
    expect(d.total[0]).toBe(c.total);
    expect(shown(dump(d, p.funcs))).toEqual(shown(c.down));
    expect(shown(dump(invert(p.funcs, d, "heavy"), p.funcs))).toEqual(shown(c.up));
    expect(shown(dump(foldDown(p, p.self(0), options(true)), p.funcs))).toEqual(shown(c.joined));
  });
  it("table", () => {
    const rows = functionTable(d).filter((r) => (r.self !== 0 || r.total !== 0) && !isCutMark(p.funcs[r.func])).map((r) => [p.funcs[r.func].name, r.self, r.total]);
    expect(rows.sort()).toEqual([...c.table].sort());
  });
  it.runIf(c.neighbours)("neighbours", () => {
    const func = p.funcs.findIndex((f) => f.name === c.neighbours!.of), n = neighboursOf(d, func);
    expect(names(n.callers)).toEqual([...c.neighbours!.callers].sort());
    expect(names(n.callees)).toEqual([...c.neighbours!.callees].sort());
  });
  it.runIf(c.search && c.stacks.every((line) => !line.includes(" -")))("search", () => {
    const re = toRegExp(c.search!.pattern)!;
    expect(search(d, Uint8Array.from(p.funcs, (f) => (re.test(f.name) ? 1 : 0))).weight).toBe(c.search!.width);
  });
  it.runIf(c.diff)("diff", () => {
    const b = tiny(c.before!, { places: c.places }), raw = compareDown(p, p.self(0), b, b.self(0), options(false));
    const scale = scaleOf(raw.tree.total[0], raw.tree.base[0], c.diff!.scaled), tree = scaledBase(raw.tree, scale);
    const noise = { largest: Math.max(Math.abs(tree.total[0]), Math.abs(tree.base[0])), nowWorth: 1, baseWorth: scale };
    const rows = new Map(functionTable(tree).map((r) => [raw.funcs[r.func].name, r]));
    for (const [name, by, before, after, change] of c.diff!.rows) {
      const r = rows.get(name)!, now = by === "self" ? r.self : r.total, base = by === "self" ? r.baseSelf : r.base;
      expect([name, by, now]).toEqual([name, by, after]);
      expect(base).toBeCloseTo(before * scale, 6);
      expect([name, by, changeOf(now, base, noise)]).toEqual([name, by, change]);
    }
  });
});
