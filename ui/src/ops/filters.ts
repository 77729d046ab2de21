// Which stacks count and how they are shown: pprof's meanings of focus, ignore, hide and show-from, as cprof report has
// them. Pure.
import type { Func } from "../model/profile";

export type FilterKind = "focus" | "ignore" | "hide" | "show-from";
export interface Filter { kind: FilterKind; pattern: string }

export interface FuncFlags { focus: Uint8Array[]; ignore: Uint8Array; hide: Uint8Array; from: Uint8Array | null }

// null: not a regular expression.
export function toRegExp(pattern: string): RegExp | null {
  try { return new RegExp(pattern, "u"); } catch { return null; }
}

export const exactly = (name: string) => `^${name.replace(/[\\^$.*+?()[\]{}|/-]/g, (c) => (c === "-" ? "-" : `\\${c}`))}$`;

function matches(funcs: Func[], pattern: string): Uint8Array {
  const re = toRegExp(pattern), out = new Uint8Array(funcs.length);
  if (re) funcs.forEach((f, i) => { if (re.test(f.name) || (f.file !== "" && re.test(f.file))) out[i] = 1; });
  return out;
}

export function flagsOf(funcs: Func[], filters: Filter[]): FuncFlags {
  const flags: FuncFlags = { focus: [], ignore: new Uint8Array(funcs.length), hide: new Uint8Array(funcs.length), from: null };
  for (const { kind, pattern } of filters) {
    const found = matches(funcs, pattern);
    if (kind === "focus") flags.focus.push(found);
    else if (kind === "show-from") flags.from = flags.from ? joined(flags.from, found) : found;
    else joinInto(kind === "ignore" ? flags.ignore : flags.hide, found);
  }
  return flags;
}

function joinInto(into: Uint8Array, more: Uint8Array) { for (let i = 0; i < into.length; i++) into[i] |= more[i]; }
function joined(a: Uint8Array, b: Uint8Array): Uint8Array { const out = a.slice(); joinInto(out, b); return out; }
