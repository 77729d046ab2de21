// A hash table of pairs of small whole numbers to row numbers; open addressing, no removal. The page's hottest structure.
export class PairTable {
  private mask: number;
  private keys: Int32Array;
  private rows: Int32Array;
  private count = 0;

  constructor(expected = 1024) {
    let size = 1024;
    while (size < expected * 2) size *= 2;
    this.mask = size - 1;
    this.keys = new Int32Array(2 * size);
    this.rows = new Int32Array(size).fill(-1);
  }

  // The row of (a, b), or `fresh`, which is then remembered.
  findOrAdd(a: number, b: number, fresh: number): number {
    if (this.count * 5 > this.mask * 3) this.grow();
    const at = this.probe(a, b);
    if (this.rows[at] >= 0) return this.rows[at];
    this.keys[2 * at] = a;
    this.keys[2 * at + 1] = b;
    this.count++;
    return (this.rows[at] = fresh);
  }

  private probe(a: number, b: number): number {
    let hash = Math.imul(a ^ Math.imul(b, 0x9e3779b1), 0x85ebca6b);
    hash ^= hash >>> 15;
    let at = hash & this.mask;
    while (this.rows[at] >= 0 && (this.keys[2 * at] !== a || this.keys[2 * at + 1] !== b)) at = (at + 1) & this.mask;
    return at;
  }

  private grow() {
    const { keys, rows, mask } = this;
    this.mask = 2 * (mask + 1) - 1;
    this.keys = new Int32Array(2 * (this.mask + 1));
    this.rows = new Int32Array(this.mask + 1).fill(-1);
    for (let i = 0; i <= mask; i++) {
      if (rows[i] < 0) continue;
      const at = this.probe(keys[2 * i], keys[2 * i + 1]);
      this.keys[2 * at] = keys[2 * i];
      this.keys[2 * at + 1] = keys[2 * i + 1];
      this.rows[at] = rows[i];
    }
  }
}
