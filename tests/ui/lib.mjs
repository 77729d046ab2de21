// What every browser test needs: a browser, pages that fail on any error or stray request, axe-core, and inputs.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const ui = createRequire(new URL("../../ui/package.json", import.meta.url));
const { chromium } = ui("playwright-core");
const axeSource = readFileSync(ui.resolve("axe-core/axe.min.js"), "utf8");
export const [cprof, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });

export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--enable-precise-memory-info"] });
let failures = 0;

export async function check(title, act) {
  const start = Date.now();
  try {
    await act();
    console.log(`ok ${title} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failures++;
    console.log(`FAILED ${title}: ${error.stack}`);
  }
}

export async function finish() {
  await browser.close();
  for (const view of View.all) view.process.kill("SIGKILL");
  if (failures) process.exit(1);
}

// Writes an input and exports it as a page; its address.
export function makePage(name, ending, content, options = []) {
  const from = join(out, `${name}.${ending}`), to = join(out, `${name}.html`);
  writeFileSync(from, content);
  execFileSync(cprof, ["convert", from, "-o", to, ...options], { stdio: "inherit" });
  return pathToFileURL(to).href;
}

// A page on which any console error, any exception and any request that is not its own is a problem.
export async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options }), page = await context.newPage(), problems = [];
  const own = url.startsWith("http") ? new RegExp(`^(data:|blob:|${url.replace(/[.\[\]]/g, "\\$&")})`) : /^(file|data|blob):/;
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") problems.push(`console: ${m.text()}`); });
  page.on("pageerror", (e) => problems.push(`exception: ${e.message}`));
  page.on("request", (r) => { if (!own.test(r.url())) problems.push(`request: ${r.url()}`); });
  if (!url.startsWith("http")) await context.route(/^(?!file:|data:|blob:)/, (route) => route.abort());
  const clock = await cpuClock(page);
  await page.goto(url, { timeout: 180_000 });
  await ready(page);
  return { clock, page, problems, close: () => context.close() };
}

// CPU time that the page's own thread has used, in ms: what a busy machine cannot change.
export async function cpuClock(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1000 * metrics.find((m) => m.name === "TaskDuration").value;
  };
}

// Whether wall-clock limits mean anything now.
export const isBusy = () => loadavg()[0] > 1.5 * cpus().length;

export const ready = (page) => page.waitForFunction(() => document.querySelector("canvas, .empty h2, [role=tabpanel]") && !document.querySelector("[role=status]"), null, { timeout: 240_000 });

export async function axe(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"], rules: { region: { enabled: false } } }));
  return found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join(", ")}`);
}

export const TABS = ["flame", "table", "timeline", "source", "sql"];
export const LOOKS = [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["narrow", { colorScheme: "light", viewport: { width: 390, height: 844 } }]];

// The rows of the table of functions that are in sight, as texts.
export const tableRows = (page) => page.$$eval("tbody tr[aria-rowindex]", (list) => list.map((r) => [...r.children].map((c) => c.textContent)));

// A running cprof view.
export class View {
  static all = [];
  static async of(files, options = []) {
    const view = new View();
    View.all.push(view);
    const env = { ...process.env, XDG_STATE_HOME: join(out, "state") };  // its list of recent files is not the user's
    view.process = spawn(cprof, ["view", "--no-browser", ...options, ...files], { stdio: ["ignore", "pipe", "inherit"], env });
    view.exited = new Promise((resolve) => view.process.once("exit", resolve));
    view.address = await new Promise((resolve, reject) => {
      view.process.stdout.once("data", (data) => resolve(String(data).trim()));
      view.process.once("exit", (code) => reject(new Error(`cprof view ended with ${code}`)));
    });
    return view;
  }
  async stop() {
    this.process.kill("SIGTERM");
    return this.exited;
  }
}

// --- pprof, by hand ---------------------------------------------------------------------------------------------------

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return [...bytes, Number(rest)];
}
const field = (number, value) => (typeof value === "object" ? [...varint(number * 8 + 2), ...varint(value.length), ...value] : [...varint(number * 8), ...varint(value)]);

// types: [name, unit]; samples: [[frames, leaf first], [values]]. A frame: a name, or [[name, line], ...] of what was inlined there,
// innermost first.
export function pprof(types, samples, hasFiles = false) {
  const strings = [""], ids = new Map([["", 0]]), bytes = [], functions = new Map(), locations = new Map();
  const text = (t) => { if (!ids.has(t)) { ids.set(t, strings.length); strings.push(t); } return ids.get(t); };
  for (const [name, unit] of types) bytes.push(...field(1, [...field(1, text(name)), ...field(2, text(unit))]));
  for (const [stack, values] of samples) {
    const places = stack.map((frame) => {
      const key = JSON.stringify(frame);
      if (!locations.has(key)) locations.set(key, { id: locations.size + 1, lines: typeof frame === "string" ? [[frame, 0]] : frame });
      return locations.get(key).id;
    });
    bytes.push(...field(2, [...places.flatMap((id) => field(1, id)), ...values.flatMap((v) => field(2, v))]));
  }
  const function_of = (name) => { if (!functions.has(name)) functions.set(name, functions.size + 1); return functions.get(name); };
  for (const { id, lines } of locations.values())
    bytes.push(...field(4, [...field(1, id), ...lines.flatMap(([name, line]) => field(4, [...field(1, function_of(name)), ...field(2, line)]))]));
  for (const [name, id] of functions) bytes.push(...field(5, [...field(1, id), ...field(2, text(name)), ...(hasFiles ? field(4, text("app.cc")) : [])]));
  for (const s of strings) bytes.push(...field(6, [...new TextEncoder().encode(s)]));
  return gzipSync(Uint8Array.from(bytes));
}
