// Colours by what a frame is. Deterministic: a hash of the module or name, the same in every run. Text on every fill has a
// contrast of 4.5:1 at least.
import type { Func } from "../model/profile";

export type Scheme = "kind" | "module" | "heat" | "diff";
export interface Fill { fill: string; text: string }

export function hashOf(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  hash ^= hash >>> 13;
  return Math.imul(hash, 0x5bd1e995) >>> 0;
}

const enum Kind { User, Kernel, Jit, Interpreted, Unknown }

function hsl(dark: boolean, hue: number, saturation: number, light: number): Fill {
  return dark ? { fill: `hsl(${hue} ${Math.round(saturation * 0.62)}% ${Math.round(light * 0.44)}%)`, text: "#f7f3ed" }
    : { fill: `hsl(${hue} ${saturation}% ${light}%)`, text: "#1b1815" };
}

// Warm hues that keep apart from the kernel's red; dark yellow is olive, so dark themes go towards brown.
const USER_HUES = [44, 38, 49, 41, 54, 36, 46, 51];

// The hue is the module's, so that one library is one colour; the shade is the name's, so that neighbours can be told apart.
function byKind(f: Func, dark: boolean): Fill {
  const hash = hashOf(f.module || f.name), shade = (hashOf(f.name) % 9) - 4;
  switch (f.kind) {
    case Kind.Kernel: return hsl(dark, dark ? 9 : 17, dark ? 78 : 88, 74 + shade / 2);
    case Kind.Jit: case Kind.Interpreted: return hsl(dark, 110 + (hash % 40), 40, 77 + shade);
    case Kind.User: {
      const hue = USER_HUES[hash % USER_HUES.length];
      return f.named ? hsl(dark, dark ? hue * 0.6 + 5 : hue, 86, 75 + shade) : hsl(dark, 35, 14, 81 + shade / 2);
    }
    default: return hsl(dark, 30, 5, 82);
  }
}

const kindFills = [new WeakMap<Func, Fill>(), new WeakMap<Func, Fill>()];

export function fillOf(f: Func | null, scheme: Scheme, dark: boolean, heat: number): Fill {
  if (!f) return dark ? { fill: "#34312d", text: "#f7f3ed" } : { fill: "#e9e5dd", text: "#1b1815" };
  if (scheme === "module") return hsl(dark, hashOf(f.module || "?") % 360, 52, 78);
  if (scheme === "heat") return hsl(dark, 52 - Math.round(46 * heat), 30 + Math.round(58 * heat), 86 - Math.round(18 * heat));
  const known = kindFills[dark ? 1 : 0];
  let fill = known.get(f);
  if (!fill) known.set(f, (fill = byKind(f, dark)));
  return fill;
}

// change: -1 gone .. 0 equal .. 1 new. Blue less, orange more: told apart by those who cannot tell red from green.
export function diffFill(change: number, isNoise: boolean, dark: boolean): Fill {
  if (isNoise || change === 0) return hsl(dark, 40, 6, 86);
  const strength = Math.min(1, Math.abs(change));
  return hsl(dark, change > 0 ? 28 : 212, 30 + Math.round(55 * strength), 90 - Math.round(20 * strength));
}

export const STATE_COLORS = {
  light: { running: "#e8833a", runnable: "#e6c229", unknown: "#d8d4cc",
    waits: { futex: "#5b7fb5", lock: "#3d5a99", poll: "#8fb0d8", sleep: "#c9d8ea", io: "#2f8f9d", network: "#4aa3c7", memory: "#7a62b3", sched: "#e6c229", other: "#9aa5b1" } as Record<string, string> },
  dark: { running: "#c46a26", runnable: "#b3951a", unknown: "#45413b",
    waits: { futex: "#4a6a9b", lock: "#34508c", poll: "#5d7fa8", sleep: "#3a4756", io: "#23737f", network: "#357f9e", memory: "#64509a", sched: "#b3951a", other: "#5f6974" } as Record<string, string> },
};
