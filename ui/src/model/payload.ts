// Reads "CPV1" (docs/page-payload.md): a JSON header and columns of varints. Columns are decoded when they are first asked
// for; unknown ones are ignored, so that older pages read newer payloads of the same version.

export interface Warning { name: string; severity: number; count: number; text: string; example?: string }
export interface Meta {
  tool: string; source: string; command: string; host: string; kernel: string;
  start_ns: string; start_realtime_ns: string; duration_ns: number; interval_ns: number; cpus: number;
  has_switches: boolean; has_off_cpu: boolean; collector_cpu_ns: number;
  samples: number; unwound: number; incomplete: number; incomplete_by_reason: Warning[];
  frames: number; unnamed_frames: number; warnings: Warning[]; comments: string[];
  has_rows: boolean; samples_metric: number | null; wall_metric: number | null; pruned_nodes: number;
  wait_classes: string[]; frame_kinds: string[];
}
export type MetricKind = "cpu" | "wall" | "offcpu" | "count" | "bytes" | "custom";
export interface Metric { name: string; unit: string; kind: MetricKind; default: boolean }
interface ColumnInfo { name: string; type: "varint" | "svarint" | "bytes"; count: number; bytes: number }

export class BadPayload extends Error {}

const SUPPORTED_VERSION = 1;

export class Payload {
  readonly meta: Meta;
  readonly metrics: Metric[];
  private readonly columns = new Map<string, { info: ColumnInfo; at: number }>();

  constructor(private readonly bytes: Uint8Array) {
    if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(0, 4)) !== "CPV1")
      throw new BadPayload("this is not a cprof page payload: it does not begin with CPV1");
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const version = view.getUint32(4, true), headerBytes = view.getUint32(8, true);
    if (version !== SUPPORTED_VERSION)
      throw new BadPayload(`the payload's version is ${version}, this page reads version ${SUPPORTED_VERSION}`);
    if (12 + headerBytes > bytes.length) throw new BadPayload(`cut off inside its header, at byte ${bytes.length}`);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + headerBytes)));
    this.meta = head.meta;
    this.metrics = head.metrics;
    let at = 12 + headerBytes;
    for (const info of head.columns as ColumnInfo[]) {
      this.columns.set(info.name, { info, at });
      at += info.bytes;
    }
    if (at > bytes.length) throw new BadPayload(`cut off: ${bytes.length} of ${at} bytes`);
  }

  has(name: string): boolean { return (this.columns.get(name)?.info.count ?? 0) > 0; }
  count(name: string): number { return this.columns.get(name)?.info.count ?? 0; }

  blob(name: string): Uint8Array {
    const column = this.columns.get(name);
    return column ? this.bytes.subarray(column.at, column.at + column.info.bytes) : new Uint8Array();
  }

  // Whole numbers below 2^31: ids, lines, depths.
  ints(name: string): Uint32Array { return this.decode(name, (n) => new Uint32Array(n)) as Uint32Array; }
  // Values and times; exact up to 2^53.
  numbers(name: string): Float64Array { return this.decode(name, (n) => new Float64Array(n)) as Float64Array; }

  private decode(name: string, make: (n: number) => Uint32Array | Float64Array): Uint32Array | Float64Array {
    const column = this.columns.get(name);
    if (!column) return make(0);
    const { info, at } = column, out = make(info.count), bytes = this.bytes, signed = info.type === "svarint";
    let p = at;
    for (let i = 0; i < info.count; i++) {
      let byte = bytes[p++], value = byte & 0x7f, scale = 128;
      while (byte & 0x80) {
        byte = bytes[p++];
        value += (byte & 0x7f) * scale;
        scale *= 128;
      }
      out[i] = signed ? (value % 2 === 1 ? -(value + 1) / 2 : value / 2) : value;
    }
    if (p > at + info.bytes) throw new BadPayload(`column ${name} is longer than it says`);
    return out;
  }
}

// Whatever travels may be packed with gzip; the browser unpacks it.
export async function unpack(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
