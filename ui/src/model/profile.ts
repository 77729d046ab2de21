// A profile as the views use it: the tree in pre-order with derived parents and ends, functions, threads, and, where the
// payload has them, the single values (rows) that the tree is made of.
import { Payload, type Meta, type Metric } from "./payload";

export interface Func {
  name: string; systemName: string; file: string; module: string; path: string; line: number;
  kind: number; named: boolean;
}
export interface Thread { pid: number; tid: number; name: string; process: string; start: number; end: number }

// Pre-order; node 0 is the root, which stands for everything.
export interface BaseTree {
  size: number;
  func: Int32Array;       // -1: the root
  parent: Int32Array;
  line: Uint32Array;
  inlined: Uint8Array;
  isFolded: boolean;      // no two children of a node are of one function: nothing is known of lines
}

export interface Rows {
  size: number;
  node: Uint32Array; thread: Int32Array; metric: Uint32Array; labels: Int32Array;
  value: Float64Array; wall: Float64Array; isSample: Uint32Array;
  time: Float64Array;     // ns since the start; sorted; 0 untimed
}
export interface States { size: number; thread: Uint32Array; start: Float64Array; duration: Float64Array; state: Uint32Array }
export interface Spans {
  size: number; thread: Int32Array; track: Int32Array; name: string[]; category: string[];
  start: Float64Array; duration: Float64Array; depth: Uint32Array;
}
export interface Marks { size: number; thread: Int32Array; track: Int32Array; name: string[]; time: Float64Array }
export interface Track { name: string; unit: string; thread: number }
export interface Counters { size: number; track: Uint32Array; time: Float64Array; value: Float64Array }
export interface Label { key: string; text: string }
export interface Source { file: string; first_line: number; lines: string[]; changed: boolean }

export class Profile {
  readonly meta: Meta;
  readonly metrics: Metric[];
  readonly funcs: Func[];
  readonly threads: Thread[];
  readonly tree: BaseTree;
  private readonly texts: string[];
  private selfCache = new Map<number, Float64Array>();
  private lazyRows?: Rows;
  private lazyStates?: States;
  private lazySpans?: Spans;
  private lazyDuration?: number;
  private lazySources?: Map<string, Source[]>;
  private lazyMarks?: Marks;
  private lazyCounters?: Counters;

  // served: its number at the cprof that serves the page.
  constructor(private readonly payload: Payload, readonly name: string, readonly served = 0) {
    this.meta = payload.meta;
    this.metrics = payload.metrics;
    this.texts = decodeTexts(payload);
    this.funcs = this.decodeFuncs();
    this.threads = this.decodeThreads();
    this.tree = decodeTree(payload);
  }

  defaultMetric(): number {
    const at = this.metrics.findIndex((m) => m.default);
    return at < 0 ? 0 : at;
  }

  // By node of the tree.
  self(metric: number): Float64Array {
    let self = this.selfCache.get(metric);
    if (!self) {
      self = new Float64Array(this.tree.size);
      self.set(this.payload.numbers(`tree.self.${metric}`), 1);
      this.selfCache.set(metric, self);
    }
    return self;
  }

  get rows(): Rows {
    return (this.lazyRows ??= {
      size: this.payload.count("rows.node"),
      node: this.payload.ints("rows.node"),
      thread: oneLess(this.payload.ints("rows.thread")),
      metric: this.payload.ints("rows.metric"),
      labels: oneLess(this.payload.ints("rows.labels")),
      value: this.payload.numbers("rows.value"),
      wall: this.payload.numbers("rows.wall"),
      isSample: this.payload.ints("rows.is_sample"),
      time: summed(this.payload.numbers("rows.time")),
    });
  }

  get states(): States {
    return (this.lazyStates ??= {
      size: this.payload.count("states.thread"),
      thread: this.payload.ints("states.thread"),
      start: summed(this.payload.numbers("states.start")),
      duration: this.payload.numbers("states.duration"),
      state: this.payload.ints("states.state"),
    });
  }

  spans(): Spans {
    const p = this.payload;
    return this.lazySpans ??= {
      size: p.count("spans.name"), thread: oneLess(p.ints("spans.thread")), track: oneLess(p.ints("spans.track")),
      name: this.named("spans.name"), category: this.named("spans.category"),
      start: summed(p.numbers("spans.time")), duration: p.numbers("spans.duration"), depth: p.ints("spans.depth"),
    };
  }

  marks(): Marks {
    const p = this.payload;
    return this.lazyMarks ??= {
      size: p.count("marks.name"), thread: oneLess(p.ints("marks.thread")), track: oneLess(p.ints("marks.track")),
      name: this.named("marks.name"), time: summed(p.numbers("marks.time")),
    };
  }

  tracks(): Track[] {
    const name = this.named("tracks.name"), unit = this.named("tracks.unit"), thread = oneLess(this.payload.ints("tracks.thread"));
    return name.map((n, i) => ({ name: n, unit: unit[i], thread: thread[i] }));
  }

  counters(): Counters { return (this.lazyCounters ??= this.decodeCounters()); }

  private decodeCounters(): Counters {
    const blob = this.payload.blob("counters.value"), size = blob.length / 8, value = new Float64Array(size);
    const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
    for (let i = 0; i < size; i++) value[i] = view.getFloat64(8 * i, true);
    return { size, track: this.payload.ints("counters.track"), time: summed(this.payload.numbers("counters.time")), value };
  }

  // The lines around a function, where the payload carries them.
  sourceOf(func: number): Source | null {
    const p = this.payload, name = this.funcs[func].file;
    if (!name || !p.has("source.file")) return null;
    const parts = (this.lazySources ??= this.decodeSources()).get(name);
    return parts?.find((s) => this.funcs[func].line >= s.first_line && this.funcs[func].line < s.first_line + s.lines.length) ?? parts?.[0] ?? null;
  }

  private decodeSources(): Map<string, Source[]> {
    const p = this.payload, file = this.named("source.file"), text = this.named("source.text"), first = p.ints("source.first_line"), changed = p.ints("source.changed");
    const sources = new Map<string, Source[]>();
    file.forEach((name, i) => {
      const list = sources.get(name) ?? [];
      list.push({ file: name, first_line: first[i], lines: text[i].replace(/\n$/, "").split("\n"), changed: changed[i] === 1 });
      sources.set(name, list);
    });
    return sources;
  }

  labelSets(): Label[][] {
    const count = this.payload.ints("label_sets.count"), key = this.named("labels.key"), text = this.named("labels.text");
    const sets: Label[][] = [];
    let at = 0;
    for (const n of count) {
      const set: Label[] = [];
      for (let i = 0; i < n; i++, at++) set.push({ key: key[at], text: text[at] });
      sets.push(set);
    }
    return sets;
  }

  get isTimed(): boolean { return this.meta.wall_metric !== null; }
  get hasTimeline(): boolean { return this.meta.has_rows && (this.isTimed || this.meta.has_switches || this.payload.has("spans.name") || this.payload.has("marks.name") || this.payload.has("counters.track")); }

  // The end of what is known, in ns since the start.
  get duration(): number { return (this.lazyDuration ??= this.findDuration()); }

  private findDuration(): number {
    let end = this.meta.duration_ns;
    const rows = this.rows;
    if (rows.size) end = Math.max(end, rows.time[rows.size - 1]);
    const s = this.states;
    for (let i = 0; i < s.size; i++) end = Math.max(end, s.start[i] + s.duration[i]);
    const spans = this.spans(), marks = this.marks(), counters = this.counters();
    for (let i = 0; i < spans.size; i++) end = Math.max(end, spans.start[i] + spans.duration[i]);
    for (const time of [marks.time, counters.time]) for (const t of time) end = Math.max(end, t);
    return end;
  }

  private named(column: string): string[] { return Array.from(this.payload.ints(column), (id) => this.texts[id]); }

  private decodeFuncs(): Func[] {
    const p = this.payload, name = this.named("funcs.name"), system = this.named("funcs.system_name"), file = this.named("funcs.file"),
      module = this.named("funcs.module"), path = this.named("funcs.path"), line = p.ints("funcs.line"), kind = p.ints("funcs.kind"), named = p.ints("funcs.named");
    return name.map((n, i) => ({
      name: n, systemName: system[i] || n, file: file[i], module: module[i], path: path[i] || module[i], line: line[i], kind: kind[i], named: named[i] === 1,
    }));
  }

  private decodeThreads(): Thread[] {
    const p = this.payload, pid = p.numbers("threads.pid"), tid = p.numbers("threads.tid"), name = this.named("threads.name"),
      process = this.named("threads.process"), start = p.numbers("threads.start"), end = p.numbers("threads.end");
    return name.map((n, i) => ({ pid: pid[i], tid: tid[i], name: n, process: process[i], start: start[i], end: end[i] }));
  }
}

// Nearly all names are ASCII: they are cut out of one large text; only the others are decoded one by one.
function decodeTexts(payload: Payload): string[] {
  const lengths = payload.ints("strings.length"), bytes = payload.blob("strings.bytes"), utf8 = new TextDecoder();
  const texts: string[] = new Array(lengths.length), all = new TextDecoder("latin1").decode(bytes);  // a character a byte
  for (let i = 0, at = 0; i < lengths.length; i++) {
    const end = at + lengths[i];
    let p = at;
    while (p < end && bytes[p] < 0x80) p++;
    texts[i] = p === end ? all.slice(at, end) : utf8.decode(bytes.subarray(at, end));
    at = end;
  }
  return texts;
}

function decodeTree(payload: Payload): BaseTree {
  const funcs = payload.ints("tree.func"), up = payload.ints("tree.up"), size = funcs.length + 1;
  const tree: BaseTree = {
    size, func: new Int32Array(size).fill(-1), parent: new Int32Array(size).fill(-1), line: new Uint32Array(size),
    inlined: new Uint8Array(size), isFolded: false,
  };
  tree.func.set(funcs, 1);
  tree.line.set(payload.ints("tree.line"), 1);
  tree.inlined.set(payload.ints("tree.inlined"), 1);
  for (let i = 1; i < size; i++) {
    let parent = i - 1;
    for (let n = up[i - 1]; n > 0; n--) parent = tree.parent[parent];
    tree.parent[i] = parent;
  }
  tree.isFolded = tree.line.every((line) => line === 0) && tree.inlined.every((flag) => flag === 0);
  return tree;
}

function oneLess(ids: Uint32Array): Int32Array {
  const out = new Int32Array(ids.length);
  for (let i = 0; i < ids.length; i++) out[i] = ids[i] - 1;
  return out;
}

function summed(deltas: Float64Array): Float64Array {
  const out = new Float64Array(deltas.length);
  let sum = 0;
  for (let i = 0; i < deltas.length; i++) out[i] = sum += deltas[i];
  return out;
}
