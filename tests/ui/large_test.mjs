// Sizes that other viewers fail at, each with its limit of time: a million nodes, 200 threads with a million spans, and (soak) a file
// of 65 MB and 200 threads with a million states. Usage: node large_test.mjs CPROF OUTPUT_DIR [soak]
import assert from "node:assert/strict";
import { readFileSync, statSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { browser, check, finish, isBusy, makePage, open, out } from "./lib.mjs";

const isSoak = process.argv[4] === "soak";
const mb = (path) => statSync(path).size / 1e6;
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
// The same sequence in every run.
function generator(seed) {
  let state = seed;
  return (below) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor((state / 4294967296) * below); };
}

function millionNodes() {
  const random = generator(7), lines = [];
  for (let i = 0; i < 185_000; i++) {
    const skewed = (n) => random(1 + random(1 + random(n))), a = skewed(40), b = skewed(300), c = skewed(2000);
    lines.push(`app;main;m${a};svc::handle_${b};detail::step_${c}<int>;x${i % 5000}::f;y${i};z${(i * 7) % 9000};w${random(3)};v${random(3)} ${1 + random(1 + random(500))}`);
  }
  return lines.join("\n") + "\n";
}

// What an act costs the page's thread until the picture that follows from it is there.
async function cost(page, clock, act, isDone) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
  const before = await clock();
  await page.evaluate(async ([source, done]) => {
    const run = new Function(`return (${source})`)(), ready = new Function(`return (${done})`)(), count = window.cprofDraw.count;
    run();
    for (let i = 0; i < 600 && !ready(count); i++) await new Promise(requestAnimationFrame);
    if (!ready(count)) throw new Error("nothing was drawn");
  }, [act, isDone]);
  return (await clock()) - before;
}

if (!isSoak) await check("a million nodes: size, first picture, zoom, search", async () => {
  const url = makePage("million", "folded", millionNodes()), size = mb(join(out, "million.html"));
  const start = Date.now(), { clock, page, problems, close } = await open(url);
  await page.waitForFunction(() => window.cprofDraw?.boxes > 100, null, { timeout: 120_000 });
  const first = Date.now() - start, firstCpu = await clock(), nodes = await page.evaluate(() => window.cprofDraw.nodes);
  const box = await page.locator("canvas").boundingBox(), zooms = [];
  for (const [x, depth] of [[0.1, 3], [0.4, 4], [0.3, 5], [0.05, 6]]) {
    const at = JSON.stringify({ clientX: box.x + box.width * x, clientY: box.y + depth * 20 + 10, bubbles: true, pointerId: 1, button: 0 });
    zooms.push(await cost(page, clock, `() => { const c = document.querySelector("canvas"); c.dispatchEvent(new PointerEvent("pointerdown", ${at})); c.dispatchEvent(new PointerEvent("pointerup", ${at})); }`, "(before) => window.cprofDraw.count > before"));
    await page.waitForTimeout(100);
  }
  const search = await cost(page, clock, `() => { const s = document.getElementById("search"); s.value = "step_77"; s.dispatchEvent(new Event("input", { bubbles: true })); }`,
    `(before) => window.cprofDraw.count > before && /matched/.test(document.querySelector(".status").textContent)`);
  console.log(`  ${nodes} nodes, ${size.toFixed(1)} MB, first picture ${first} ms (${firstCpu.toFixed(0)} ms of CPU), zooms ${zooms.map((z) => z.toFixed(1)).join(" ")} ms, search ${search.toFixed(1)} ms`);
  assert.ok(nodes > 1_000_000, `${nodes} nodes`);
  assert.ok(size < 25, `${size} MB`);
  assert.ok(firstCpu < 10_000 && (isBusy() || first < 10_000), `first picture after ${first} ms, ${firstCpu} ms of CPU`);
  assert.ok(median(zooms) < 50, `zoom ${zooms} ms`);
  assert.ok(search < 100, `search ${search} ms`);
  assert.deepEqual(problems, []);
  await close();
});

// Turns a wheel at each animation frame: the times between pictures, and what one costs the page's thread.
async function frames(page, clock, turns) {
  const before = await clock();
  const times = await page.evaluate(async (list) => {
    const canvas = document.querySelector("canvas[aria-roledescription=timeline]"), box = canvas.getBoundingClientRect(), between = [];
    let last = 0;
    for (const turn of list) {
      const now = await new Promise(requestAnimationFrame);
      if (last) between.push(now - last);
      last = now;
      canvas.dispatchEvent(new WheelEvent("wheel", { clientX: box.x + box.width * 0.6, clientY: box.y + 100, cancelable: true, ...turn }));
    }
    return between;
  }, turns);
  return { times, cpu: ((await clock()) - before) / turns.length };
}

async function smoothly(page, clock, name) {
  await page.waitForFunction(() => window.cprofTimeline?.lanes === 200, null, { timeout: 60_000 });
  const down = Array.from({ length: 30 }, () => ({ deltaY: 40 })), into = Array.from({ length: 40 }, () => ({ deltaY: -30, ctrlKey: true })), along = Array.from({ length: 20 }, () => ({ deltaY: 60, shiftKey: true }));
  await frames(page, clock, down.slice(0, 5));
  const { times, cpu } = await frames(page, clock, [...down, ...into, ...along, ...into.map(() => ({ deltaY: 30, ctrlKey: true }))]);
  console.log(`  ${mb(join(out, `${name}.html`)).toFixed(1)} MB, frame ${median(times).toFixed(1)} ms, of which CPU ${cpu.toFixed(1)} ms (${times.length} frames)`);
  assert.ok(cpu < 33 && (isBusy() || median(times) < 33), `a frame takes ${median(times)} ms, ${cpu} ms of CPU`);
}

function millionSpans() {
  const random = generator(11), threads = 200, each = 5000, parts = [];
  for (let t = 1; t <= threads; t++) {
    let at = random(1000);
    for (let i = 0; i < each / 2; i++) {
      const long = 20 + random(400);
      parts.push(`{"ph":"X","name":"job ${i % 97}","pid":1,"tid":${t},"ts":${at},"dur":${long}},{"ph":"X","name":"part ${i % 13}","pid":1,"tid":${t},"ts":${at + 5},"dur":${long - 10}}`);
      at += long + random(300);
    }
  }
  return `[${parts.join(",\n")}]`;
}

if (!isSoak) await check("200 threads with a million spans: scrolls and zooms smoothly", async () => {
  const url = makePage("spans-million", "trace.json", millionSpans()), { clock, page, problems, close } = await open(url);
  await page.click("#tab-timeline");
  await smoothly(page, clock, "spans-million");
  assert.deepEqual(problems, []);
  await close();
  unlinkSync(join(out, "spans-million.trace.json"));
});

// What perf script prints of 200 threads, and how much each of them ran.
function manySamples() {
  const random = generator(5), parts = [], sums = new Map(), frames = Array.from({ length: 4000 }, (_, i) => `\t${(0x400000 + 64 * i).toString(16)} ns${i % 40}::Type${i % 300}::method_${i}+0x10 (/usr/bin/app)\n`);
  for (let i = 0, bytes = 0; bytes < 65e6; i++) {
    const t = random(40) === 0 ? random(200) : random(1 + random(200)), time = (1 + i / 1e4).toFixed(6), stack = [];
    for (let d = 9; d >= 0; d--) stack.push(frames[d < 3 ? d : 3 + random(20 * (d + 1)) + d * 40]);
    const text = `thread-${t} 1/${100 + t} [000] ${time}: 1000000 cpu-clock:\n${stack.join("")}\n`;
    parts.push(text);
    bytes += text.length;
    sums.set(`thread-${t}`, (sums.get(`thread-${t}`) ?? 0) + 1);
  }
  return { text: parts.join(""), sums };
}

// The most memory that a process of the page has had, in MB: arrays, pictures and code, not the heap alone.
async function pageMemory() {
  const session = await browser.newBrowserCDPSession(), { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return Math.max(...processInfo.filter((p) => p.type === "renderer").map((p) => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${p.id}/status`, "utf8"))[1]) / 1e3));
}

if (isSoak) await check("65 MB with 200 threads: a change of thread under 2 s, memory under 1 GB", async () => {
  const { text, sums } = manySamples(), whole = [...sums.values()].reduce((a, b) => a + b, 0);
  assert.equal(sums.size, 200);
  const { clock, page, problems, close } = await open(makePage("large-file", "perf.txt", text));
  const times = [], costs = [], seen = new Set();
  for (let i = 0; i < 12; i++) {
    const drawn = await page.evaluate(() => window.cprofDraw.count), start = Date.now(), before = await clock();
    await page.keyboard.press("]");
    await page.waitForFunction((n) => window.cprofDraw.count > n, drawn);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    times.push(Date.now() - start);
    costs.push((await clock()) - before);
    const [, name] = /Thread (thread-\d+)/.exec(await page.textContent(".chip")), [, share] = /shows ([\d.]+) % of/.exec(await page.textContent(".chips"));
    seen.add(name);
    assert.ok(Math.abs(Number(share) - (100 * sums.get(name)) / whole) < 0.006, `${name}: ${share} % of all`);
  }
  await page.click("#tab-timeline");
  await page.waitForFunction(() => window.cprofTimeline?.lanes === 200);
  const memory = await pageMemory();
  console.log(`  ${(text.length / 1e6).toFixed(0)} MB of input, thread ${times.join(" ")} ms (${costs.map((c) => c.toFixed(0)).join(" ")} ms of CPU), page ${memory.toFixed(0)} MB at most`);
  assert.equal(seen.size, 12, "one after the other");
  assert.ok(Math.max(...costs) < 2000 && (isBusy() || Math.max(...times) < 2000), `a thread takes ${times} ms, ${costs} ms of CPU`);
  assert.ok(memory < 1000, `${memory} MB`);
  assert.deepEqual(problems, []);
  await close();
});

// 200 threads, each 2,500 times on a CPU and off it: perf.data in its pipe form, of switch records alone.
function millionStates() {
  const random = generator(3), threads = 200, each = 5000, size = 48, out = Buffer.alloc(16 + 112 + threads * 112 + threads * each * size);
  let at = out.write("PERFILE2", "latin1") + out.writeBigUInt64LE(16n, 8) - 8;
  at = 16;
  const head = (kind, misc, bytes) => { out.writeUInt32LE(kind, at); out.writeUInt16LE(misc, at + 4); out.writeUInt16LE(bytes, at + 6); };
  head(64, 0, 112);  // one event: type, size, config, period, sample_type (identifier, tid, time, cpu), flags (sample_id_all, context_switch)
  [1, 96].forEach((v, i) => out.writeUInt32LE(v, at + 8 + 4 * i));
  [0n, 1_000_000n, (1n << 16n) | (1n << 1n) | (1n << 2n) | (1n << 7n), 0n, (1n << 18n) | (1n << 26n)].forEach((v, i) => out.writeBigUInt64LE(v, at + 16 + 8 * i));
  out.writeBigUInt64LE(1n, at + 104);
  at += 112;
  const who = (offset, tid, time) => {
    out.writeUInt32LE(1, at + offset); out.writeUInt32LE(tid, at + offset + 4); out.writeBigUInt64LE(BigInt(time), at + offset + 8);
    out.writeUInt32LE(tid, at + offset + 16); out.writeBigUInt64LE(1n, at + offset + 24);
  };
  for (let t = 1; t <= threads; t++, at += 64) { head(3, 0, 64); out.writeUInt32LE(1, at + 8); out.writeUInt32LE(t, at + 12); out.write(`worker ${t}`, at + 16); who(32, t, 1000); }
  for (let t = 1; t <= threads; t++, at += 40) {  // and a sample each
    head(9, 2, 40);
    out.writeBigUInt64LE(1n, at + 8); out.writeUInt32LE(1, at + 16); out.writeUInt32LE(t, at + 20); out.writeBigUInt64LE(1000n, at + 24); out.writeUInt32LE(t, at + 32);
  }
  const clocks = Array.from({ length: threads }, () => 1000 + random(100_000));
  for (let i = 0; i < each; i++)
    for (let t = 0; t < threads; t++, at += 40) { clocks[t] += 1000 + random(150_000); head(14, i % 2 ? 1 << 13 : 0, 40); who(8, t + 1, clocks[t]); }
  return out.subarray(0, at);
}

if (isSoak) await check("200 threads that ran and waited a million times: scrolls and zooms smoothly", async () => {
  const { clock, page, problems, close } = await open(makePage("states-million", "perf.data", millionStates()));
  await page.click("#tab-timeline");
  await smoothly(page, clock, "states-million");
  assert.deepEqual(problems, []);
  await close();
});

await finish();
