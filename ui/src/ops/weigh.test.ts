import { expect, it } from "vitest";
import { tiny } from "../testing/tiny";
import { lineCosts, subtreeSums } from "./lines";
import { lowerBound, weigh } from "./weigh";

const rows = [{ line: 0, thread: 0, time: 10, value: 1 }, { line: 1, thread: 1, time: 20, value: 2 }, { line: 0, thread: 1, time: 30, value: 4 }];
const p = tiny(["main;a 5", "main;b 2"], { rows, threads: 2 });
const sums = (s: Float64Array) => [...s].filter((v) => v !== 0);

it("everything is the tree's own weight", () => expect(sums(weigh(p, { metric: 0, threads: null, time: null, labels: [] }))).toEqual([5, 2]));
it("chosen threads", () => expect(sums(weigh(p, { metric: 0, threads: new Set([1]), time: null, labels: [] }))).toEqual([4, 2]));
it("chosen time: from its first moment, before its last", () => expect(sums(weigh(p, { metric: 0, threads: null, time: [10, 30], labels: [] }))).toEqual([1, 2]));
it("a label that nothing has", () => expect(sums(weigh(p, { metric: 0, threads: null, time: null, labels: [{ key: "k", text: "v" }] }))).toEqual([]));
it("lower bound", () => {
  const sorted = Float64Array.from([1, 3, 3, 5]);
  expect([0, 1, 2, 3, 4, 5, 6].map((v) => lowerBound(sorted, v))).toEqual([0, 0, 1, 1, 3, 3, 4]);
});
it("lines: own cost and cost with callees, recursion once", () => {
  const q = tiny(["f@1;g 3", "f@2 1", "f@1;f@2;g 5"]), self = q.self(0), total = subtreeSums(q.tree, self);
  expect(lineCosts(q.tree, self, total, 0)).toEqual([{ line: 1, self: 0, total: 8 }, { line: 2, self: 1, total: 1 }]);
});
