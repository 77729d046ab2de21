// Which stacks count and how they are shown: pprof's meanings of focus, ignore, hide and show-from, as cprof report has
// them. Pure.
import type { Func } from "../model/profile";

export const FILTER_KINDS = ["focus", "ignore", "hide", "show-from"] as const;
export type FilterKind = (typeof FILTER_KINDS)[number];
export interface Filter { kind: FilterKind; pattern: string }

export interface FuncFlags { focus: Uint8Array[]; ignore: Uint8Array; hide: Uint8Array; from: Uint8Array | null; mark: Uint8Array; hasHidden: boolean }

// null: not a regular expression. RE2's way to write some things is understood, so that cprof report's expressions are.
export function toRegExp(pattern: string): RegExp | null {
  const ignoresCase = pattern.startsWith("(?i)"), text = (ignoresCase ? pattern.slice(4) : pattern).replace(/\(\?P</g, "(?<");
  for (const flags of ["u", ""]) {
    try { return new RegExp(text, flags + (ignoresCase ? "i" : "")); } catch { /* without u escapes need not be needed */ }
  }
  return null;
}

// Says that a stack was cut above; no frame of the program's, so no expression finds it.
const UNKNOWN = 4;  // of the kinds of frames
export const isCutMark = (f: Func) => f.kind === UNKNOWN && f.name === "[truncated]";

export const exactly = (name: string) => `^${name.replace(/[\\^$.*+?()[\]{}|/-]/g, (c) => (c === "-" ? "-" : `\\${c}`))}$`;

function matches(funcs: Func[], pattern: string): Uint8Array {
  const re = toRegExp(pattern), out = new Uint8Array(funcs.length);
  const isFound = (text: string) => text !== "" && re!.test(text);
  if (re) funcs.forEach((f, i) => { if (!isCutMark(f) && (isFound(f.name) || isFound(f.file) || isFound(f.path))) out[i] = 1; });
  return out;
}

export function flagsOf(funcs: Func[], filters: Filter[]): FuncFlags {
  const flags: FuncFlags = { focus: [], ignore: new Uint8Array(funcs.length), hide: new Uint8Array(funcs.length), from: null, mark: Uint8Array.from(funcs, (f) => (isCutMark(f) ? 1 : 0)), hasHidden: filters.some((f) => f.kind === "hide") };
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
