// Every tab of an exported page in a real browser: no error, no request to anywhere, no fault that axe-core knows, the keyboard,
// and pictures in light, dark and narrow. Usage: node page_test.mjs CPROF OUTPUT_DIR
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axe, check, cprof, finish, LOOKS, makePage, open, out, pprof, tableRows, TABS } from "./lib.mjs";

const HOSTILE = ["<script>window.hacked = 1</script>", "\"quoted\" & 'so'", "\u202Eright-to-left", "esc\u001b[31m", "n".repeat(1 << 20)];


const ordinary = makePage("ordinary", "folded", "app;main;parse;lex 600\napp;main;parse 100\napp;main;render;draw;__memcpy 250\napp;main;render;entry_SYSCALL_64_[k];ksys_write_[k] 50\n");

await check("every tab, light and dark, wide and narrow: no error, no request, axe-core clean", async () => {
  for (const [name, options] of LOOKS) {
    const { page, problems, close } = await open(ordinary, options);
    for (const tab of TABS) {
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
  assert.deepEqual(problems, []);
  await close();
});

