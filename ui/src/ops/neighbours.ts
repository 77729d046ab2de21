// Who calls a function and whom it calls, with the value of the stacks that have the call; a stack that has it twice counts
// once. As cprof report --peek has them. Pure.
import type { ViewTree } from "./view_tree";

export interface Neighbours { callers: [func: number, value: number][]; callees: [func: number, value: number][] }

export function neighboursOf(tree: ViewTree, func: number): Neighbours {
  const callers = new Map<number, number>(), callees = new Map<number, number>();
  const closeAt: number[] = [], close: (() => void)[] = [], openIn = new Map<number, number>(), openOut = new Map<number, number>();
  const count = (sums: Map<number, number>, open: Map<number, number>, other: number, node: number) => {
    const nested = open.get(other) ?? 0;
    if (nested === 0) sums.set(other, (sums.get(other) ?? 0) + tree.total[node]);
    open.set(other, nested + 1);
    closeAt.push(tree.end[node]);
    close.push(() => { open.set(other, open.get(other)! - 1); });
  };
  for (let i = 1; i < tree.size; i++) {
    while (closeAt.length && closeAt[closeAt.length - 1] <= i) { closeAt.pop(); close.pop()!(); }
    const caller = tree.func[tree.parent[i]], callee = tree.func[i];
    if (caller < 0) continue;
    if (callee === func) count(callers, openIn, caller, i);
    if (caller === func) count(callees, openOut, callee, i);
  }
  const sorted = (sums: Map<number, number>) => [...sums].filter(([, v]) => v !== 0).sort((a, b) => b[1] - a[1]);
  return { callers: sorted(callers), callees: sorted(callees) };
}
