// Every tab of an exported page in a real browser: no error, no request to anywhere, no fault that axe-core knows, the keyboard,
// and pictures in light, dark and narrow. Usage: node page_test.mjs CPROF OUTPUT_DIR
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const ui = createRequire(new URL("../../ui/package.json", import.meta.url));
const { chromium } = ui("playwright-core");
const axeSource = readFileSync(ui.resolve("axe-core/axe.min.js"), "utf8");
const [cprof, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });

const HOSTILE = ["<script>window.hacked = 1</script>", "\"quoted\" & 'so'", "\u202Eright-to-left", "esc\u001b[31m", "n".repeat(1 << 20)];

function makePage(name, folded) {
  const from = join(out, `${name}.folded`), to = join(out, `${name}.html`);
  writeFileSync(from, folded);
  execFileSync(cprof, ["convert", "--input-format", "folded", from, "-o", to], { stdio: "inherit" });
  return pathToFileURL(to).href;
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let failures = 0;

async function check(title, act) {
  try {
    await act();
    console.log(`ok ${title}`);
  } catch (error) {
    failures++;
    console.log(`FAILED ${title}: ${error.message}`);
  }
}

// A page that fails on any console error, any exception and any request that is not the file itself.
async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options }), page = await context.newPage(), problems = [];
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") problems.push(`console: ${m.text()}`); });
  page.on("pageerror", (e) => problems.push(`exception: ${e.message}`));
  page.on("request", (r) => { if (!/^(file|data|blob):/.test(r.url())) problems.push(`request: ${r.url()}`); });
  await context.route(/^(?!file:|data:|blob:)/, (route) => route.abort());
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector("canvas, .empty h2") && !document.querySelector("[role=status]"), null, { timeout: 60_000 });
  return { page, problems, close: () => context.close() };
}

async function axe(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"], rules: { region: { enabled: false } } }));
  return found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join(", ")}`);
}

const ordinary = makePage("ordinary", "app;main;parse;lex 600\napp;main;parse 100\napp;main;render;draw;__memcpy 250\napp;main;render;entry_SYSCALL_64_[k];ksys_write_[k] 50\n");

await check("every tab, light and dark, wide and narrow: no error, no request, axe-core clean", async () => {
  for (const [name, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["narrow", { colorScheme: "light", viewport: { width: 390, height: 844 } }]]) {
    const { page, problems, close } = await open(ordinary, options);
    for (const tab of ["flame", "table", "timeline", "source", "sql"]) {
      await page.click(`#tab-${tab}`);
      await page.waitForTimeout(150);
      await page.screenshot({ path: join(out, `${name}-${tab}.png`) });
      const violations = await axe(page);
      assert.deepEqual(violations, [], `${name} ${tab}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} ${tab} is not wider than the window`);
    }
    assert.deepEqual(problems, []);
    await close();
  }
});

await check("the table's numbers are the file's", async () => {
  const { page, close } = await open(ordinary);
  await page.click("#tab-table");
  const rows = await page.$$eval("tbody tr[aria-rowindex]", (list) => list.map((r) => [...r.children].map((c) => c.textContent)));
  const of = (name) => rows.find((r) => r[0] === name);
  assert.deepEqual(of("lex").slice(1, 5), ["600", "60 %", "600", "60 %"]);
  assert.deepEqual(of("parse").slice(1, 5), ["100", "10 %", "700", "70 %"]);
  assert.deepEqual(of("main").slice(1, 5), ["0", "0 %", "1,000", "100 %"]);
  assert.equal(rows[0][0], "lex", "the largest self is first");
  await close();
});

await check("a click zooms, the URL holds it, Back undoes it, a reload keeps it", async () => {
  const { page, problems, close } = await open(ordinary);
  const box = await page.locator("canvas").boundingBox();
  await page.mouse.click(box.x + 30, box.y + 3.5 * 20);  // all, app, main, parse
  await page.waitForFunction(() => location.hash.includes("parse"));
  assert.match(await page.textContent(".crumbs"), /parse/);
  assert.match(await page.textContent(".drawer"), /parse/);
  await page.reload();
  await page.waitForSelector(".crumbs");
  assert.match(await page.textContent(".crumbs"), /parse/);
  await page.click(".crumbs button");
  await page.waitForFunction(() => !document.querySelector(".crumbs"));
  await page.goBack();
  await page.waitForSelector(".crumbs");
  assert.deepEqual(problems, []);
  await close();
});

await check("the keyboard alone: select, zoom, search, filter, sandwich, tabs, help", async () => {
  const { page, problems, close } = await open(ordinary);
  await page.locator("canvas").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  assert.match(await page.textContent(".status"), /parse/);
  assert.match(await page.textContent("#live"), /frame parse, 70\.0 % total, 10\.0 % self/);
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent(".status"), /render/);
  await page.keyboard.press("u");
  await page.keyboard.press("/");
  await page.keyboard.type("memcpy");
  assert.match(await page.textContent(".status"), /matched 25 % \(1 frames\)/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("f");
  await page.waitForSelector(".chip");
  assert.match(await page.textContent("nav.bar"), /shows 30 % of 1,000/);
  await page.keyboard.press("x");
  assert.match(await page.textContent(".view"), /Callers of render/);
  await page.keyboard.press("2");
  await page.waitForSelector("table[role=grid]");
  await page.keyboard.press("?");
  assert.ok(await page.isVisible("dialog[open]"));
  await page.keyboard.press("Escape");
  assert.deepEqual(problems, []);
  await close();
});

await check("names that want to be code, cannot be read, or are a megabyte long", async () => {
  const url = makePage("hostile", HOSTILE.map((name, i) => `app;${name.replaceAll(";", ":")} ${10 + i}`).join("\n") + "\n"), { page, problems, close } = await open(url);
  await page.locator("canvas").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
  for (const tab of ["table", "source", "flame"]) await page.click(`#tab-${tab}`);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(problems, []);
  await close();
});

await check("one frame, and nothing left by filters", async () => {
  const { page, problems, close } = await open(makePage("one", "app;main 1\n"));
  await page.locator("canvas").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("g");
  assert.match(await page.textContent(".empty"), /filters hide everything/);
  await page.click(".empty button");
  await page.waitForSelector("canvas");
  assert.deepEqual(problems, []);
  await close();
});

await check("50,000 frames deep", async () => {
  const { page, problems, close } = await open(makePage("deep", `app${";again;and".repeat(25_000)} 3\n`));
  await page.keyboard.press("b");
  await page.keyboard.press("2");
  await page.waitForSelector("table[role=grid]");
  assert.deepEqual(problems, []);
  await close();
});

await check("a large profile: first picture, zoom and search in time", async () => {
  const lines = [];
  for (let i = 0; i < 120_000; i++) lines.push(`app;m${i % 7};a${i % 97};b${i % 1009};c${i % 7919};d${i} ${1 + (i % 13)}`);
  const url = makePage("large", lines.join("\n") + "\n"), start = Date.now(), { page, problems, close } = await open(url);
  await page.waitForFunction(() => window.cprofDraw?.boxes > 100);
  const first = Date.now() - start;
  const zoom = await page.evaluate(() => window.cprofDraw.ms);
  await page.fill("#search", "c77");
  await page.waitForFunction(() => /matched/.test(document.querySelector(".status").textContent));
  console.log(`  first picture ${first} ms, drawing ${zoom.toFixed(1)} ms`);
  assert.ok(first < 10_000, `first picture after ${first} ms`);
  assert.deepEqual(problems, []);
  await close();
});

await browser.close();
if (failures) process.exit(1);
