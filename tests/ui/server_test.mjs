// The page against a running `cprof view`: every tab, files that are dropped on it, SQL that is given up, source and instructions,
// the sample, and a server that went away. Usage: node server_test.mjs CPROF OUTPUT_DIR
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axe, check, cprof, finish, LOOKS, open, out, pprof, ready, tableRows, TABS, View } from "./lib.mjs";

const file = (name, content) => { const path = join(out, name); writeFileSync(path, content); return path; };
const ordinary = file("served.folded", "app;main;parse;lex 600\napp;main;parse 100\napp;main;render;draw 250\n");
const other = file("other.folded", "app;main;parse;lex 300\napp;main;cache 90\n");

async function drop(page, name, bytes) {
  const transfer = await page.evaluateHandle(([n, b64]) => {
    const data = new DataTransfer(), raw = Uint8Array.from(atob(b64), (c) => c.charCodeAt(0));
    data.items.add(new File([raw], n));
    return data;
  }, [name, Buffer.from(bytes).toString("base64")]);
  await page.dispatchEvent(".app", "dragover", { dataTransfer: transfer });
  await page.dispatchEvent(".app", "drop", { dataTransfer: transfer });
}
const shownFile = (page) => page.$eval("[aria-label=File] option:checked", (o) => o.textContent);

await check("every tab from the server in light, dark and narrow: no error, no stray request, axe-core clean, not wider than the window", async () => {
  const view = await View.of([]);
  for (const [name, options] of LOOKS) {
    const { page, problems, close } = await open(view.address, options), isFirst = name === LOOKS[0][0];
    if (isFirst) {
      assert.match(await page.textContent(".empty"), /Open a profile/);
      assert.deepEqual(await axe(page), []);
      await page.screenshot({ path: join(out, "served-empty.png") });
      await page.click("button:has-text('sample')");
      await page.waitForSelector("canvas");
    }
    for (const tab of TABS) {
      await page.click(`#tab-${tab}`);
      await page.waitForTimeout(100);
      await page.screenshot({ path: join(out, `served-${name}-${tab}.png`) });
      assert.deepEqual(await axe(page), [], `${name} ${tab}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} ${tab} is not wider than the window`);
    }
    assert.deepEqual(problems, []);
    await close();
  }
  assert.equal(await view.stop(), 0);
});

await check("several files by scope: each its own numbers, one against the other", async () => {
  const view = await View.of([ordinary, other]), { page, problems, close } = await open(view.address);
  assert.deepEqual(await page.$$eval("[aria-label=File] option", (l) => l.map((o) => o.textContent)), ["served.folded", "other.folded", "open…"]);
  await page.click("#tab-table");
  const lex = async () => (await tableRows(page)).find((r) => r[0] === "lex")[1];
  assert.equal(await lex(), "600");
  await page.selectOption("[aria-label=File]", "1");
  assert.equal(await lex(), "300");
  await page.selectOption("[aria-label='Compare with']", "0");
  assert.ok((await tableRows(page)).some((r) => r[0] === "draw" && r[6].startsWith("-")), "what is gone is in the table");
  await page.reload();
  await ready(page);
  assert.equal(await page.inputValue("[aria-label=File]"), "1", "the address holds it");
  assert.deepEqual(problems, []);
  await close();
  await view.stop();
});

await check("recent files: what was shown before, opened by a click, forgotten when asked", async () => {
  rmSync(join(out, "state"), { recursive: true, force: true });
  await (await View.of([other])).stop();
  const before = await View.of([ordinary]);
  await before.stop();
  const view = await View.of([]), { page, problems, close } = await open(view.address);
  await page.waitForSelector(".recent li");
  assert.deepEqual(await page.$$eval(".recent strong", (list) => list.map((s) => s.textContent)), ["served.folded", "other.folded"]);
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: join(out, "served-recent.png") });
  await page.click(".recent button:has-text('other.folded')");
  await page.waitForSelector("canvas");
  await page.click("#tab-table");
  assert.equal((await tableRows(page)).find((r) => r[0] === "cache")[1], "90");
  assert.deepEqual(problems, []);
  await close();
  const empty = await View.of([]), again = await open(empty.address);
  await again.page.waitForSelector(".recent li");
  assert.equal(await again.page.textContent(".recent strong"), "other.folded", "the last is first");
  await again.page.click("button:has-text('Forget')");
  await again.page.waitForFunction(() => !document.querySelector(".recent"));
  await again.page.reload();
  await ready(again.page);
  assert.equal(await again.page.$(".recent"), null);
  await again.close();
  await empty.stop();
  await view.stop();
});

await check("another file is chosen as the base of a diff, or to be shown", async () => {
  const view = await View.of([ordinary]), { page, problems, close } = await open(view.address);
  const choose = async (select, path) => {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.selectOption(`[aria-label='${select}']`, "another")]);
    await chooser.setFiles(path);
  };
  await choose("Compare with", other);
  await page.waitForFunction(() => document.querySelector("[aria-label='Compare with'] option:checked").textContent === "against other.folded");
  assert.equal(await shownFile(page), "served.folded", "what is shown stays");
  assert.match(await page.textContent(".legend"), /less than base/);
  await choose("File", other);
  await page.waitForFunction(() => document.querySelectorAll("[aria-label=File] option").length === 4);
  assert.equal(await page.inputValue("[aria-label=File]"), "2");
  assert.deepEqual(problems, []);
  await close();
  await view.stop();
});

await check("any readable input dropped", async () => {
  const view = await View.of([]), { page, problems, close } = await open(view.address);
  const chrome = JSON.stringify([{ ph: "X", name: "load", pid: 1, tid: 1, ts: 0, dur: 10 }]);
  const recording = join(out, "dropped.cprof");
  execFileSync(cprof, ["convert", ordinary, "-o", recording]);
  for (const [name, bytes] of [["a.pb.gz", pprof([["cpu", "nanoseconds"]], [[["f"], [5]]])], ["no ending at all", "x;y 7\n"], ["t.json", chrome], ["r.cprof", readFileSync(recording)]]) {
    await drop(page, name, bytes);
    await page.waitForFunction((n) => (document.querySelector("[aria-label=File] option:checked") ?? document.querySelector(".title"))?.textContent === n, name);
  }
  assert.equal(await shownFile(page), "r.cprof");
  await page.click("#tab-table");
  assert.equal((await tableRows(page)).find((r) => r[0] === "lex")[1], "600");
  assert.deepEqual(problems, []);
  await close();
  await view.stop();
});

await check("two windows of one server that open files of their own: each asks of its own", async () => {
  const view = await View.of([ordinary]), one = await open(view.address), two = await open(view.address);
  await drop(one.page, "first.folded", "x;y 7\n");
  await one.page.waitForFunction(() => document.querySelector("[aria-label=File] option:checked")?.textContent === "first.folded");
  await drop(two.page, "second.folded", "x;y 9\n");
  await two.page.waitForFunction(() => document.querySelector("[aria-label=File] option:checked")?.textContent === "second.folded");
  await two.page.click("#tab-sql");
  await two.page.fill("textarea.sql", "SELECT sum(value) FROM aggregate_sample");
  await two.page.keyboard.press("Control+Enter");
  assert.equal(await two.page.textContent(".grid td"), "9");
  await one.close();
  await two.close();
  await view.stop();
});

await check("a file that is none is named with what is wrong, one that takes long is given up, one that is too large is not sent", async () => {
  const view = await View.of([ordinary]), { page, close } = await open(view.address);
  await drop(page, "holiday.jpg", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]));
  await page.waitForSelector("[role=alert]");
  assert.match(await page.textContent("[role=alert]"), /holiday\.jpg/);
  assert.ok(!(await page.textContent("[role=alert]")).includes("/tmp"), "no path of the server");
  await page.click("[role=alert] button");
  await page.waitForSelector("canvas");
  await page.route("**/api/open*", () => {});  // never answered
  await drop(page, "endless.folded", "x 1\n");
  await page.click("[role=status] button:has-text('Cancel')");
  await page.waitForSelector("canvas");
  await page.evaluate(() => {
    const file = new File(["x"], "huge.data"), event = new Event("drop", { bubbles: true });
    Object.defineProperty(file, "size", { value: 10 * 2 ** 30 });
    Object.defineProperty(event, "dataTransfer", { value: { files: [file] } });
    document.querySelector(".app").dispatchEvent(event);
  });
  assert.match(await page.textContent("[role=alert]"), /10 GiB, more than the 2 GiB.*cprof view huge\.data/);
  await close();
  await view.stop();
});

await check("SQL: tables, rows, a plain error, and a query that is given up frees the file while others are served", async () => {
  const view = await View.of([ordinary]), { page, close } = await open(view.address);
  await page.click("#tab-sql");
  await page.waitForSelector("nav[aria-label=Tables] summary");
  const run = async (text) => { await page.fill("textarea.sql", text); await page.keyboard.press("Control+Enter"); };
  await run("SELECT sum(value) AS total FROM aggregate_sample");
  await page.waitForSelector(".grid td");
  assert.equal(await page.textContent(".grid td"), "950");
  await run("SELECT * FROM nowhere");
  assert.match(await page.textContent("[role=alert]"), /no such table/);
  await run("DELETE FROM stack_profile_frame");
  await page.waitForFunction(() => /may not be modified/.test(document.querySelector("[role=alert]")?.textContent ?? ""));
  await run("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
  await page.waitForSelector("button:has-text('Cancel')");
  const served = await page.evaluate(async () => (await fetch("api/profile?f=0")).status);
  assert.equal(served, 200, "while the query runs");
  const start = Date.now();
  await page.click("button:has-text('Cancel')");
  await page.waitForFunction(() => /Cancelled/.test(document.querySelector("[role=alert]")?.textContent ?? ""));
  await run("SELECT 41 + 1 AS answer");
  await page.waitForFunction(() => document.querySelector(".grid td")?.textContent === "42");
  assert.ok(Date.now() - start < 10_000, "long before its time limit of 30 s");
  await close();
  assert.equal(await view.stop(), 0);
});

await check("SQL over several files: one at a time, or all of them told apart by their scope; stacks are drawn", async () => {
  const view = await View.of([ordinary, other]), { page, problems, close } = await open(view.address);
  await page.click("#tab-sql");
  await page.fill("textarea.sql", "SELECT scope, sum(value) AS total FROM aggregate_sample s JOIN aggregate_profile p ON p.id = s.aggregate_profile_id GROUP BY scope");
  const rows = async () => {
    await Promise.all([page.waitForResponse(/api\/sql/), page.keyboard.press("Control+Enter")]);
    await page.waitForFunction(() => document.querySelector("button.primary").textContent === "Run");
    return page.$$eval(".grid tbody tr", (list) => list.map((r) => [...r.children].map((c) => c.textContent)));
  };
  await page.focus("textarea.sql");
  assert.deepEqual(await rows(), [[ordinary, "950"]]);
  await page.click("button:has-text('All files')");
  await page.focus("textarea.sql");
  assert.deepEqual(await rows(), [[other, "390"], [ordinary, "950"]]);
  await page.fill("textarea.sql", "SELECT stack, sum(value) AS value FROM hot_stacks GROUP BY stack");
  await rows();
  await page.click("button:has-text('Show as flame graph')");
  await page.waitForFunction(() => document.querySelector("[aria-label=File] option:checked")?.textContent === "query.folded");
  await page.click("#tab-table");
  assert.equal((await tableRows(page)).find((r) => r[0] === "lex")[1], "900", "600 of one file, 300 of the other");
  assert.deepEqual(problems, []);
  await close();
  await view.stop();
});

await check("a recording: what it lacks in plain words with the mend; instructions beside their source with the share of each", async () => {
  const { first, last } = JSON.parse(execFileSync("python3", [join(import.meta.dirname, "recording.py"), out], { encoding: "utf8" }));
  const view = await View.of([join(out, "recording.perf.data")]), { page, problems, close } = await open(view.address);
  await page.click("button.notes");
  const notes = await page.textContent(".popover");
  for (const said of [/stacks do not reach their root \(truncated-snapshot\).*--stack-size/, /Records lost because the kernel's ring was full \(7\).*Lower -F/, /frames have no name.*install debug symbols/])
    assert.match(notes, said);
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("Escape");
  await page.selectOption("[aria-label=Metric]", { label: "Samples" });
  await page.click("#tab-source");
  await page.waitForFunction(() => /n = mix/.test(document.querySelector(".code").textContent));
  await page.click("button:has-text('Instructions')");
  await page.waitForSelector("tr.asm");
  const rows = await page.$$eval(".code tbody tr", (list) => list.map((r) => [r.className, ...[...r.children].map((c) => c.textContent)]));
  const asm = rows.filter((r) => r[0].startsWith("asm")), at = (address) => asm.find((r) => r[6].trim().startsWith(`${address.toString(16)} `));
  const all = rows.filter((r) => !r[0].startsWith("asm")).reduce((n, r) => n + Number(r[1]), 0);
  assert.deepEqual([at(first).slice(1, 3), at(last).slice(1, 3)], [["60", "50.0 %"], ["40", "33.3 %"]]);
  assert.equal(all, 100);
  assert.equal(asm.reduce((n, r) => n + Number(r[1]), 0), all, "lines and instructions are of one sum");
  let line = 0, sum = 0;
  for (const [kind, self] of rows.concat([["", "0"]])) {
    if (kind.startsWith("asm")) { sum += Number(self); continue; }
    assert.equal(sum, line, "a line's own cost is that of its instructions");
    [line, sum] = [Number(self), 0];
  }
  assert.ok(asm.some((r) => /imul|lea|add/.test(r[6])) && asm.some((r) => /mix/.test(r[6])), "instructions of what was inlined say so");
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: join(out, "served-instructions.png") });
  assert.deepEqual(problems, []);
  await close();
  await view.stop();
});

await check("the text of source files; a file that is not there is said", async () => {
  const source = file("served.c", Array.from({ length: 30 }, (_, i) => `int line_${i + 1};`).join("\n"));
  const view = await View.of([file("callgrind.out.1", `events: Ir\n\nfl=${source}\nfn=hot\n20 900\n\nfl=/nowhere/gone.c\nfn=cold\n3 10\n`)]), { page, problems, close } = await open(view.address);
  await page.click("#tab-source");
  await page.waitForFunction(() => /line_20/.test(document.querySelector(".code").textContent));
  const lines = await page.$$eval(".code tbody tr", (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
  assert.deepEqual(lines.find((l) => l[5] === "int line_20;").slice(0, 5), ["900", "98.9 %", "900", "98.9 %", "20"]);
  assert.deepEqual(problems, []);
  await page.click("nav[aria-label=Functions] button:has-text('cold')");
  await page.waitForFunction(() => /gone\.c: the source file is not there/.test(document.querySelector(".code").textContent));
  await close();
  await view.stop();
});

await check("a server that went away: what is loaded still works, what needs it says so", async () => {
  const view = await View.of([ordinary]), { page, close } = await open(view.address);
  await view.stop();
  await page.click("#tab-table");
  assert.equal((await tableRows(page)).find((r) => r[0] === "lex")[1], "600");
  await page.click("#tab-sql");
  await page.fill("textarea.sql", "SELECT 1");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => /not running any more/.test(document.querySelector(".banner [role=alert]")?.textContent ?? ""));
  assert.deepEqual(await axe(page), []);
  await page.click("button:has-text('Retry')");
  await page.waitForFunction(() => /No answer/.test(document.querySelector(".banner").textContent));
  await page.screenshot({ path: join(out, "served-gone.png") });
  await close();
});

await check("a server that could not be reached for a while: Retry brings back what needs it", async () => {
  const view = await View.of([ordinary]), { page, close } = await open(view.address);
  await page.route("**/api/*", (route) => route.abort());
  await page.click("#tab-sql");
  await page.waitForSelector(".banner");
  await page.unroute("**/api/*");
  await page.route("**/api/files", (route) => route.fulfill({ status: 404, body: "not found" }), { times: 1 });
  await page.click("button:has-text('Retry')");
  await page.waitForFunction(() => /Another cprof/.test(document.querySelector(".banner").textContent));
  await page.click("button:has-text('Retry')");
  await page.waitForSelector("nav[aria-label=Tables] summary");
  assert.equal(await page.$(".banner"), null);
  await close();
  await view.stop();
});

await finish();
