import { expect, it } from "vitest";
import { BadPayload, Payload, unpack } from "./payload";
import { Profile } from "./profile";

type Column = [name: string, type: string, values: number[] | Uint8Array];

function leb(value: number): number[] {
  const out: number[] = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) | 128);
  return [...out, value];
}

function payload(columns: Column[], meta: object = {}, metrics: object[] = []): Uint8Array {
  const parts = columns.map(([, type, values]) => (type === "bytes" ? [...values] : [...values].flatMap((v) => leb(type === "svarint" ? (v < 0 ? -2 * v - 1 : 2 * v) : v))));
  const head = new TextEncoder().encode(JSON.stringify({ meta, metrics, columns: columns.map(([name, type, values], i) => ({ name, type, count: values.length, bytes: parts[i].length })) }));
  const out = new Uint8Array(12 + head.length + parts.reduce((n, p) => n + p.length, 0)), view = new DataView(out.buffer);
  out.set([0x43, 0x50, 0x56, 0x31]);
  view.setUint32(4, 1, true);
  view.setUint32(8, head.length, true);
  out.set(head, 12);
  let at = 12 + head.length;
  for (const p of parts) { out.set(p, at); at += p.length; }
  return out;
}

// Functions with these names (numbers of strings) and nothing else.
function functions(names: number[], strings: Uint8Array[]): Column[] {
  const none = names.map(() => 0), of = (name: string, values: number[]): Column => [`funcs.${name}`, "varint", values];
  return [of("name", names), ...["system_name", "file", "module", "line", "kind"].map((name) => of(name, none)), of("named", names.map(() => 1)),
    ["strings.length", "varint", strings.map((s) => s.length)], ["strings.bytes", "bytes", Uint8Array.from(strings.flatMap((s) => [...s]))]];
}
const utf8 = (...texts: string[]) => texts.map((t) => new TextEncoder().encode(t));
const untimed = { has_rows: false, samples_metric: null, wall_metric: null };

it("numbers of every size and sign", () => {
  const values = [0, 1, -1, 63, -64, 64, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, -(2 ** 52)];
  expect([...new Payload(payload([["x", "svarint", values]])).numbers("x")]).toEqual(values);
});
it("an unknown column is no error, a missing one is empty", () => {
  const p = new Payload(payload([["later", "varint", [1]], ["x", "varint", [300]]]));
  expect([...p.ints("x")]).toEqual([300]);
  expect(p.ints("nothing").length).toBe(0);
});
it("what is cut off or of another kind is said", () => {
  const whole = payload([["x", "varint", [1, 2, 3]]]);
  expect(() => new Payload(whole.subarray(0, whole.length - 1))).toThrow(BadPayload);
  expect(() => new Payload(new TextEncoder().encode("<html>........"))).toThrow("CPV1");
  const newer = whole.slice();
  newer[4] = 9;
  expect(() => new Payload(newer)).toThrow("version is 9");
});
it("gzip is unpacked", async () => {
  const raw = new TextEncoder().encode("hello"), packed = new Uint8Array(await new Response(new Blob([raw]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
  expect(new TextDecoder().decode(await unpack(packed))).toBe("hello");
});
it("the tree's parents come from the steps up", () => {
  const columns: Column[] = [
    ["tree.func", "varint", [0, 1, 2, 1]], ["tree.up", "varint", [0, 0, 0, 2]], ["tree.line", "varint", [1, 2, 3, 4]], ["tree.inlined", "varint", [0, 0, 1, 0]],
    ["tree.self.0", "svarint", [0, 0, 5, -2]], ...functions([1, 2, 3], utf8("", "main", "a", "b")),
  ];
  const p = new Profile(new Payload(payload(columns, untimed, [{ name: "cpu", unit: "count", kind: "cpu", default: true }])), "x");
  expect([...p.tree.parent]).toEqual([-1, 0, 1, 2, 1]);
  expect(p.funcs.map((f) => f.name)).toEqual(["main", "a", "b"]);
  expect([...p.self(0)]).toEqual([0, 0, 0, 5, -2]);
});
it("names of any script, and bytes that are no text", () => {
  const names = utf8("", "main", "größe", "abc", "\u{1f525}", "x");
  names[3] = Uint8Array.of(0x61, 0xff, 0x63);
  const p = new Profile(new Payload(payload([["tree.func", "varint", []], ...functions([1, 2, 3, 4, 5], names)], untimed)), "x");
  expect(p.funcs.map((f) => f.name)).toEqual(["main", "größe", "a\ufffdc", "\u{1f525}", "x"]);
});
