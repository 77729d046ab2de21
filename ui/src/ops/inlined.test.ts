import { describe, expect, it } from "vitest";
import { tiny } from "../testing/tiny";
import { inlinedByLine } from "./inlined";
import { subtreeSums } from "./lines";

// "f@3;+g@1 2": g was inlined into line 3 of f.
function inlinedIn(lines: string[], name: string) {
  const p = tiny(lines), self = p.self(0), total = subtreeSums(p.tree, self);
  const inlined = Uint8Array.from(p.tree.func, (f) => (f >= 0 && p.funcs[f].name.startsWith("+") ? 1 : 0));
  return { p, found: inlinedByLine({ ...p.tree, inlined }, self, total, p.funcs.findIndex((f) => f.name === name)) };
}

function rowsOf(lines: string[], name: string): Record<number, string[]> {
  const { p, found } = inlinedIn(lines, name), out: Record<number, string[]> = {};
  for (const [line, list] of found) out[line] = list.map((r) => `${" ".repeat(r.depth)}${p.funcs[r.func].name} ${r.self}/${r.total}`);
  return out;
}

describe("inlinedByLine", () => {
  it("gives what each line took in, callers before callees, the heaviest first", () => {
    expect(rowsOf(["main@1;f@3;+light@1 2", "main@1;f@3;+heavy@7;+deep@9 5", "main@1;f@3;+heavy@8 1", "main@1;f@4;+light@1 4", "main@1;f@4 1"], "f"))
      .toEqual({ 3: ["+heavy 1/6", " +deep 5/5", "+light 2/2"], 4: ["+light 4/4"] });
  });
  it("counts calls from inlined code, and leaves out what is called and not inlined", () => {
    expect(rowsOf(["f@3;+g@1;out@1 5", "f@3;call@1;+h@1 2"], "f")).toEqual({ 3: ["+g 0/5"] });
  });
  it("of a function that calls itself only the outermost call counts for totals", () => {
    expect(rowsOf(["f@3;+g@1;f@3;+g@1 5"], "f")).toEqual({ 3: ["+g 5/5"] });
  });
  it("finds it where the function itself was inlined", () => {
    expect(rowsOf(["main@1;+f@3;+g@1 5", "f@3;+g@1 2"], "+f")).toEqual({ 3: ["+g 5/5"] });
    expect(rowsOf(["main@1 5"], "main")).toEqual({});
  });
  it("a chain of 50,000 is no deeper than its loop", () => {
    const names = Array.from({ length: 50_000 }, (_, i) => `+g${i % 7}@1`).join(";");
    expect(inlinedIn([`f@3;${names} 5`], "f").found.get(3)!.map((r) => r.total)).toEqual(new Array(50_000).fill(5));
  });
});
