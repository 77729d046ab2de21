// Every tab of an exported page in a real browser: no error, no request to anywhere, no fault that axe-core knows, the keyboard,
// and pictures in light, dark and narrow. Usage: node page_test.mjs CPROF OUTPUT_DIR
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { axe, check, cprof, finish, LOOKS, makePage, open, out, pprof, tableRows, TABS } from "./lib.mjs";

const HOSTILE = ["<script>window.hacked = 1</script>", "\"quoted\" & 'so'", "\u202Eright-to-left", "esc\u001b[31m", "n".repeat(1 << 20)];


const ordinary = makePage("ordinary", "folded", "app;main;parse;lex 600\napp;main;parse 100\napp;main;render;draw;__memcpy 250\napp;main;render;entry_SYSCALL_64_[k];ksys_write_[k] 50\n");

// Two exported pages as one with both profiles.
function joinedPages(name, one, two) {
  const data = (url) => /<script type="application\/octet-stream"[^]*?<\/script>/.exec(readFileSync(new URL(url), "utf8"))[0];
  const both = join(out, `${name}.html`);
  writeFileSync(both, readFileSync(new URL(one), "utf8").replace(data(one), (d) => `${d}\n${data(two)}`));
  return pathToFileURL(both).href;
}

await check("every tab, light and dark, wide and narrow: no error, no request, axe-core clean", async () => {
  for (const [name, options] of LOOKS) {
    const { page, problems, close } = await open(ordinary, options);
    for (const tab of TABS) {
      await page.click(`#tab-${tab}`);
      await page.waitForTimeout(100);
      await page.screenshot({ path: join(out, `${name}-${tab}.png`) });
      if (name !== "narrow") assert.deepEqual(await axe(page), [], `${name} ${tab}`);  // narrow: server_test.mjs
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} ${tab} is not wider than the window`);
    }
    assert.deepEqual(problems, []);
    await close();
  }
});

await check("the table's numbers are the file's", async () => {
  const { page, close } = await open(ordinary);
  await page.click("#tab-table");
  const rows = await tableRows(page), of = (name) => rows.find((r) => r[0] === name);
  assert.deepEqual(of("lex").slice(1, 5), ["600", "60.0 %", "600", "60.0 %"]);
  assert.deepEqual(of("parse").slice(1, 5), ["100", "10.0 %", "700", "70.0 %"]);
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
  assert.match(await page.textContent(".status"), /matched 25.0 % \(1 frames\)/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("f");
  await page.waitForSelector(".chip");
  assert.match(await page.textContent("nav.bar"), /shows 30.0 % of 1,000/);
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
  const url = makePage("hostile", "folded", HOSTILE.map((name, i) => `app;${name.replaceAll(";", ":")} ${10 + i}`).join("\n") + "\n"), { page, problems, close } = await open(url);
  await page.locator("canvas").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
  for (const tab of ["table", "source", "flame"]) await page.click(`#tab-${tab}`);
  await page.click("button:has-text('Export')");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("button:has-text('SVG')")]);
  const titles = await page.evaluate((text) => [...new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("title, parsererror")].map((t) => t.textContent), readFileSync(await saved.path(), "utf8"));
  assert.deepEqual([titles[0].split(":")[0], titles.length], ["all", 7], "a picture that is well-formed");
  assert.ok(titles.some((t) => t.startsWith("<script>window.hacked = 1</script>: 10 ")) && titles.some((t) => t.startsWith("esc\ufffd[31m: 13 ")), titles.map((t) => t.slice(0, 60)).join());
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(problems, []);
  await close();
});

await check("one frame, and nothing left by filters", async () => {
  const { page, problems, close } = await open(makePage("one", "folded", "app;main 1\n"));
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
  const { page, problems, close } = await open(makePage("deep", "folded", `app${";again;and".repeat(25_000)} 3\n`));
  await page.keyboard.press("b");
  await page.keyboard.press("2");
  await page.waitForSelector("table[role=grid]");
  await page.click("button:has-text('Call tree')");
  assert.deepEqual(problems, []);
  await close();
  const deepest = execFileSync(cprof, ["sql", join(out, "deep.folded"), "-q", "SELECT max(depth) FROM stack_profile_callsite"], { encoding: "utf8" });
  assert.match(deepest, /\b50000\b/);
  assert.match(execFileSync(cprof, ["report", join(out, "deep.folded")], { encoding: "utf8" }), /again/);
});

await check("two metrics of a pprof: switched at once, the totals are the sums of the file", async () => {
  const samples = [[["parse", "main"], [30, 4096]], [["alloc", "parse", "main"], [5, 1 << 20]], [["alloc", "main"], [0, 777]], [["spin", "main"], [65, 0]]];
  const url = makePage("two-metrics", "pb.gz", pprof([["cpu", "nanoseconds"], ["alloc_space", "bytes"]], samples)), { page, problems, close } = await open(url);
  // As go tool pprof sums: flat is the leaf's, cum is every function's once a stack.
  const sums = (at) => {
    const flat = new Map(), cum = new Map();
    for (const [stack, values] of samples) {
      flat.set(stack[0], (flat.get(stack[0]) ?? 0) + values[at]);
      for (const name of new Set(stack)) cum.set(name, (cum.get(name) ?? 0) + values[at]);
    }
    return [flat, cum, samples.reduce((n, [, v]) => n + v[at], 0)];
  };
  await page.click("#tab-table");
  const metrics = await page.$$eval("[aria-label=Metric] option", (list) => list.map((o) => o.textContent));
  assert.equal(metrics.length, 2, metrics.join());
  for (const [at, unit] of [[0, (n) => (n ? `${n} ns` : "0")], [1, (n) => (n === 0 ? "0" : n >= 1 << 20 ? `${(n / (1 << 20)).toLocaleString("en-US", { maximumFractionDigits: 2 })} MiB` : n >= 1024 ? `${(n / 1024).toLocaleString("en-US", { maximumFractionDigits: 2 })} KiB` : `${n} B`)]]) {
    await page.selectOption("[aria-label=Metric]", String(at));
    const [flat, cum, total] = sums(at), rows = await tableRows(page);
    for (const [name, self, , whole] of rows) {
      assert.equal(self, unit(flat.get(name) ?? 0), `self of ${name} in metric ${at}`);
      assert.equal(whole, unit(cum.get(name)), `total of ${name} in metric ${at}`);
    }
    assert.equal(rows.length, at === 0 ? 4 : 3, "what weighs nothing is not listed");
    assert.match(await page.textContent("header"), new RegExp(unit(total).replace(".", "\\.")));
  }
  await page.selectOption("[aria-label=Metric]", "0");
  await page.selectOption("[aria-label='Second metric']", { index: 1 });
  const parse = (await tableRows(page)).find((r) => r[0] === "parse");
  assert.deepEqual(parse.slice(5, 7), ["4 KiB", "× 0.00732"]);
  await page.click("#tab-flame");
  await page.keyboard.press("m");
  assert.equal(await page.inputValue("[aria-label=Metric]"), "1");
  assert.deepEqual(problems, []);
  await close();
});

await check("negative values are drawn by their size and named with their sign", async () => {
  const url = makePage("delta", "pb.gz", pprof([["space", "bytes"]], [[["gone", "main"], [-3000]], [["fresh", "main"], [5000]]])), { page, problems, close } = await open(url);
  await page.locator("canvas").focus();
  for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  assert.match(await page.textContent(".status"), /fresh.*4\.88 KiB/);
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent(".status"), /gone.*-2\.93 KiB/);
  await page.keyboard.press("ArrowUp");
  assert.match(await page.textContent(".status"), /main.*1\.95 KiB/);
  assert.match(await page.textContent(".legend"), /negative/);
  const box = await page.locator("canvas").boundingBox(), over = async (part) => { await page.mouse.move(box.x + part * box.width, box.y + 2.5 * 20); return page.textContent(".status"); };
  assert.match(await over(0.61), /fresh/);
  assert.match(await over(0.64), /gone/, "5 and 3 parts of 8");
  await page.click("#tab-table");
  assert.ok((await tableRows(page)).some((r) => r[0] === "gone" && r[1] === "-2.93 KiB"));
  assert.deepEqual(problems, []);
  await close();
});

await check("a metric that is all zero offers the other; no samples at all are explained", async () => {
  const zero = await open(makePage("zero", "pb.gz", pprof([["cpu", "nanoseconds"], ["allocs", "count"]], [[["f"], [0, 7]]])));
  await zero.page.selectOption("[aria-label=Metric]", "0");
  assert.match(await zero.page.textContent(".empty"), /All values of CPU time \(cpu\) are 0/);
  await zero.page.click(".empty button");
  await zero.page.waitForSelector("canvas");
  assert.deepEqual(zero.problems, []);
  await zero.close();
  const none = await open(makePage("none", "pb.gz", pprof([["cpu", "nanoseconds"]], [])));
  assert.match(await none.page.textContent(".empty"), /no samples/);
  for (const tab of TABS) await none.page.click(`#tab-${tab}`);
  assert.deepEqual(none.problems, []);
  await none.close();
});

await check("what the recording lacks is said in plain words, with the mend", async () => {
  const good = makePage("notes", "trace.json", JSON.stringify([{ ph: "B", name: "a", pid: 1, tid: 1, ts: 0 }, { ph: "E", pid: 1, tid: 1, ts: 10 }, { ph: "E", pid: 1, tid: 1, ts: 11 }]));
  const { page, problems, close } = await open(good);
  await page.click("button.notes");
  assert.match(await page.textContent(".popover"), /end/i);
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(problems, []);
  await close();
});

await check("programs' own spans, marks and counters are lanes of the timeline; what is shorter than a pixel is seen", async () => {
  const events = [{ ph: "X", name: "request", pid: 1, tid: 1, ts: 0, dur: 1000 }, { ph: "X", name: "parse", pid: 1, tid: 1, ts: 100, dur: 300 }, { ph: "X", name: "zero", pid: 1, tid: 2, ts: 500, dur: 0 },
    { ph: "i", name: "tick", pid: 1, tid: 1, ts: 700, s: "t" }, { ph: "C", name: "queue", pid: 1, tid: 1, ts: 10, args: { length: 3 } }, { ph: "C", name: "queue", pid: 1, tid: 1, ts: 600, args: { length: 9 } }];
  const { page, problems, close } = await open(makePage("spans", "trace.json", JSON.stringify({ traceEvents: events })), {});
  await page.click("#tab-timeline");
  await page.waitForFunction(() => window.cprofTimeline?.lanes >= 3);
  const box = await page.locator("canvas[aria-roledescription=timeline]").boundingBox(), text = async (x, y) => { await page.mouse.move(box.x + x, box.y + y); return page.textContent(".status"); };
  const said = [];
  for (let y = 24; y < 160; y += 6) for (const x of [260, 400, 560]) said.push(await text(x, y));
  for (const wanted of [/request, 1 ms/, /parse, 300 µs/, /: [39]\b/]) assert.ok(said.some((s) => wanted.test(s)), String(wanted));
  assert.deepEqual(problems, []);
  await close();
});

await check("a diff in one file: less, more, gone and new; ratio; both directions agree", async () => {
  const one = makePage("diff-after", "folded", "both1 25\nboth2 50\nchanged_only 125\n"), two = makePage("diff-before", "folded", "base_only 50\nboth1 25\nboth2 25\n");
  const { page, problems, close } = await open(joinedPages("diff", one, two));
  assert.equal(await page.$$eval("[aria-label=File] option", (l) => l.length), 2);
  await page.selectOption("[aria-label='Compare with']", "1");
  if (await page.getAttribute("button:has-text('Normalise')", "aria-pressed") === "true") await page.click("button:has-text('Normalise')");
  await page.click("#tab-table");
  const row = async (name) => (await tableRows(page)).find((r) => r[0] === name);
  assert.deepEqual((await row("both2")).slice(3, 9), ["50", "25.0 %", "25", "+25", "× 2", ""]);
  assert.deepEqual((await row("base_only")).slice(5, 8), ["50", "-50", "× 0"]);
  assert.deepEqual((await row("changed_only")).slice(5, 8), ["0", "+125", "new"]);
  await page.selectOption("[aria-label=File]", "1");
  await page.selectOption("[aria-label='Compare with']", "0");
  assert.deepEqual((await row("both2")).slice(5, 8), ["50", "-25", "× 0.5"]);
  await page.click("#tab-flame");
  for (const direction of ["Down", "Up"])
    for (const width of ["This", "Base"]) {
      await page.click(`button:text-is("${direction}")`);
      await page.click(`button:text-is("${width}")`);
      await page.locator("canvas").focus();
      await page.keyboard.press("0");
      await page.keyboard.press("ArrowDown");
      for (let i = 0; i < 4 && !/^both2/.test(await page.textContent(".status")); i++) await page.keyboard.press("ArrowRight");
      assert.match(await page.textContent(".status"), /^both2.*25 \(25\.0 %\).*-25 against base/, `${direction} ${width}`);
      await page.keyboard.press("Escape");
    }
  await page.click("button:text-is('This')");
  assert.match(await page.textContent(".drawer"), /What changed.*changed_only-125, gone.*base_only\+50, new.*both2-25/);
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: join(out, "diff.png") });
  assert.deepEqual(problems, []);
  await close();
});

await check("the ratio of two counts of one run: cycles for each instruction", async () => {
  const one = makePage("cycles", "folded", "main;f 3000\nmain;g 500\nmain;h 4000\n"), two = makePage("instructions", "folded", "main;f 1000\nmain;g 1000\nmain;h 4000\n");
  const { page, problems, close } = await open(joinedPages("cpi", one, two));
  await page.selectOption("[aria-label='Compare with']", "1");
  if (await page.getAttribute("button:has-text('Normalise')", "aria-pressed") === "true") await page.click("button:has-text('Normalise')");
  await page.click("#tab-table");
  const rows = new Map((await tableRows(page)).map((r) => [r[0], r[7]]));
  assert.deepEqual(["f", "g", "h"].map((name) => rows.get(name)), ["× 3", "× 0.5", "× 1"]);
  await page.click("#tab-flame");
  await page.click("button:has-text('Base')");
  assert.match(page.url(), /w=base/);
  assert.deepEqual(problems, []);
  await close();
});

await check("code that was inlined opens below its line, and leads to its own source", async () => {
  const line = (n, ...inner) => [...inner, ["work", n]];
  const url = makePage("inlined", "pb.gz", pprof([["cpu", "count"]], [
    [[line(7, ["deep", 30], ["push", 20]), "main"], [50]], [[line(7, ["push", 21]), "main"], [20]], [[line(7, ["size", 5]), "main"], [10]], [[line(9), "main"], [20]],
  ], true)), { page, problems, close } = await open(url);
  await page.click("#tab-source");
  await page.click("nav[aria-label=Functions] button:has-text('work')");
  const rows = () => page.$$eval(".code tbody tr", (list) => list.map((r) => [r.cells[0].textContent, r.cells[2].textContent, r.cells[5].textContent]));
  assert.deepEqual((await rows()).map((r) => r.slice(0, 2)), [["", "80"], ["20", "20"]]);
  await page.click("[aria-label='Code inlined into line 7']");
  assert.deepEqual(await rows(), [["", "80", ""], ["20", "70", "↳ push app.cc"], ["50", "50", "↳ deep app.cc"], ["10", "10", "↳ size app.cc"], ["20", "20", ""]]);
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: join(out, "inlined.png") });
  await page.click("[aria-label='Code inlined into line 7']");
  assert.equal((await rows()).length, 2);
  await page.click("button:has-text('Inlined code')");
  await page.click(".code button.link:has-text('push')");
  await page.waitForFunction(() => document.querySelector(".code strong")?.textContent === "push");
  assert.deepEqual((await rows()).map((r) => r.slice(0, 2)), [["", "50"], ["20", "20"]]);
  assert.deepEqual(problems, []);
  await close();
});

await check("a page that the browser saved as it was shows the same again; one of a server says that it holds no profile", async () => {
  const { page, close } = await open(makePage("saved", "folded", "app;main 3\napp;wait 4\n")), path = join(out, "saved-again.html");
  await page.click("#tab-table");
  writeFileSync(path, await page.content());
  await close();
  const again = await open(pathToFileURL(path).href);
  await again.page.waitForSelector("canvas");
  assert.equal(await again.page.locator("header").count(), 1);
  await again.page.click("#tab-table");
  assert.deepEqual((await tableRows(again.page)).map((r) => r.slice(0, 2)).sort(), [["app", "0"], ["main", "3"], ["wait", "4"]]);
  assert.deepEqual(again.problems, []);
  await again.close();
  writeFileSync(path, readFileSync(join(import.meta.dirname, "../../src/page/page.html")));
  const empty = await open(pathToFileURL(path).href);
  assert.match(await empty.page.textContent(".empty"), /holds no profile/);
  assert.deepEqual(empty.problems, []);
  await empty.close();
});

await check("links that were cut or edited show what is understood of them", async () => {
  const { page, problems, close } = await open(ordinary), list = (...items) => encodeURIComponent(JSON.stringify(items).slice(1, -1));
  for (const hash of [`z=${list(1, null, "app")}`, `f=${list(["evil", "x"], ["focus", 5], "x", ["focus"], ["hide", "("])}`, `l=${list([1, 2], {})}`, "th=x,99,-1", "t=9-1", "d=7", "i=-3", "v=none&dir=sideways", "m=none&m2=none", "%E0%A4%A", "z=%5B%22"]) {
    await page.evaluate((text) => { location.hash = text; }, hash);
    for (const tab of TABS) await page.click(`#tab-${tab}`);
    assert.ok(await page.$("nav[aria-label='Views and filters']"), hash);
    assert.deepEqual(problems, [], hash);
  }
  await close();
});

await check("names that every object has already", async () => {
  const names = ["constructor", "__proto__", "toString", "hasOwnProperty"];
  const { page, problems, close } = await open(makePage("objects", "pb.gz", pprof([["constructor", "__proto__"], ["toString", "count"]], names.map((n) => [[n, "main"], [3, 4]]))));
  for (const tab of TABS) await page.click(`#tab-${tab}`);
  await page.click("#tab-table");
  assert.deepEqual((await tableRows(page)).map((r) => r[0]).sort(), [...names, "main"].sort());
  assert.deepEqual(problems, []);
  await close();
});

await check("source text travels in the file when it is asked for", async () => {
  const source = join(out, "hot.c");
  writeFileSync(source, Array.from({ length: 40 }, (_, i) => `line number ${i + 1} < & "`).join("\n"));
  const callgrind = `events: Ir\n\nfl=${source}\nfn=hot\n20 900\n22 80\n`;
  const without = await open(makePage("no-source", "callgrind.out", callgrind));
  await without.page.click("#tab-source");
  assert.match(await without.page.textContent(".code"), /Without the source text/);
  await without.close();
  const { page, problems, close } = await open(makePage("with-source", "callgrind.out", callgrind, ["--with-source"]));
  await page.click("#tab-source");
  const lines = await page.$$eval(".code tbody tr", (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
  assert.deepEqual(lines.find((l) => l[4] === "20").slice(0, 4), ["900", "91.8 %", "900", "91.8 %"]);
  assert.equal(lines.find((l) => l[4] === "22")[5], 'line number 22 < & "');
  assert.equal(lines[0][4], "8", "12 lines before the first");
  assert.deepEqual(problems, []);
  assert.throws(() => execFileSync(cprof, ["convert", "--with-source", source, "-o", join(out, "x.folded")], { stdio: "ignore" }), "only for pages");
  await close();
});

await finish();
