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
  const text = new TextEncoder().encode("mainab"), columns: Column[] = [
    ["tree.func", "varint", [0, 1, 2, 1]], ["tree.up", "varint", [0, 0, 0, 2]], ["tree.line", "varint", [1, 2, 3, 4]], ["tree.inlined", "varint", [0, 0, 1, 0]],
    ["tree.self.0", "svarint", [0, 0, 5, -2]],
    ["funcs.name", "varint", [1, 2, 3]], ["funcs.system_name", "varint", [0, 0, 0]], ["funcs.file", "varint", [0, 0, 0]], ["funcs.module", "varint", [0, 0, 0]],
    ["funcs.line", "varint", [0, 0, 0]], ["funcs.kind", "varint", [0, 1, 4]], ["funcs.named", "varint", [1, 1, 0]],
    ["strings.length", "varint", [0, 4, 1, 1]], ["strings.bytes", "bytes", text],
  ];
  const p = new Profile(new Payload(payload(columns, { has_rows: false, samples_metric: null, wall_metric: null }, [{ name: "cpu", unit: "count", kind: "cpu", default: true }])), "x");
  expect([...p.tree.parent]).toEqual([-1, 0, 1, 2, 1]);
  expect(p.funcs.map((f) => f.name)).toEqual(["main", "a", "b"]);
  expect([...p.self(0)]).toEqual([0, 0, 0, 5, -2]);
});
it("names of any script, and bytes that are no text", () => {
  const names = ["", "main", "größe", "abc", "\u{1f525}", "x"], encoder = new TextEncoder(), blob = names.map((n) => [...encoder.encode(n)]);
  blob[3] = [0x61, 0xff, 0x63];
  const columns: Column[] = [
    ["tree.func", "varint", []], ["funcs.name", "varint", [1, 2, 3, 4, 5]], ["funcs.system_name", "varint", [0, 0, 0, 0, 0]], ["funcs.file", "varint", [0, 0, 0, 0, 0]],
    ["funcs.module", "varint", [0, 0, 0, 0, 0]], ["funcs.line", "varint", [0, 0, 0, 0, 0]], ["funcs.kind", "varint", [0, 0, 0, 0, 0]], ["funcs.named", "varint", [1, 1, 1, 1, 1]],
    ["strings.length", "varint", blob.map((b) => b.length)], ["strings.bytes", "bytes", Uint8Array.from(blob.flat())],
  ];
  const p = new Profile(new Payload(payload(columns, { has_rows: false, samples_metric: null, wall_metric: null })), "x");
  expect(p.funcs.map((f) => f.name)).toEqual(["main", "größe", "a\ufffdc", "\u{1f525}", "x"]);
});
