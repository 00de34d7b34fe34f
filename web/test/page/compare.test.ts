import type { Browser, Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { launch, obstacle, open, settled } from "./browser";
import { compare, HEALTHY, HOSTILE, hostile, removePages, THRASH } from "./pages";

type Side = "before" | "after";

const readout = (page: Page, side: Side) => page.$eval(`#navigator [data-side=${side}] .readout`, (it) => it.textContent ?? "");
const values = (page: Page, side: Side) => page.$eval(`#chart-${side}-where .values`, (it) => it.textContent ?? "");

/** Where the labels of a chart's vertical axis stand cannot be read from a canvas, but how its curves say it. */
const labelled = (page: Page, side: Side, chart: string) =>
  page.$eval(`#chart-${side}-${chart} .plot`, (it) => it.getAttribute("aria-label") ?? "");

async function boxOf(page: Page, side: Side, chart: string): Promise<{ x: number; y: number; width: number; height: number }> {
  await page.$eval(`#chart-${side}-${chart}`, (it) => it.scrollIntoView({ block: "center" }));
  await settled(page);
  const box = await (await page.$(`#chart-${side}-${chart} .u-over`))?.boundingBox();
  if (!box) throw new Error(`no plot of ${chart} ${side}`);
  return box;
}

describe.skipIf(obstacle("MEMTIDE") !== null)("the page of two sources, from a file and offline", () => {
  let browser: Browser;
  let worse: string;
  beforeAll(async () => {
    browser = await launch();
    worse = compare(HEALTHY, THRASH);
  });
  afterAll(async () => {
    removePages();
    await browser.close();
  });

  test("draws every chart twice and has nothing to complain of", async () => {
    const { page, complaints } = await open(browser, worse);
    const charts = await page.$$eval("figure[data-chart] .plot.is-drawn", (all) =>
      all.map((it) => it.closest("figure")?.id.replace(/^chart-(before|after)-/, "$1 ") ?? ""),
    );
    for (const chart of ["where", "pressure", "swap", "refaults", "reclaim", "dirty"]) {
      expect(charts).toContain(`before ${chart}`);
      expect(charts).toContain(`after ${chart}`);
    }
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("moves one cursor over both, by the time since the beginning of each", async () => {
    const { page } = await open(browser, worse);
    expect(await readout(page, "after")).toContain("worst moment");
    expect(await readout(page, "before")).not.toContain("worst");
    const opened = [await values(page, "before"), await values(page, "after")];
    const { x, y, width, height } = await boxOf(page, "before", "where");
    await page.mouse.move(x + width * 0.3, y + height / 2);
    await settled(page);
    const [before, after] = [await readout(page, "before"), await readout(page, "after")];
    expect(before).toBe(after);
    expect(await values(page, "after")).not.toBe(opened[1]);
    await page.keyboard.press("Escape");
    await page.mouse.move(5, 5);
    await settled(page);
    expect([await values(page, "before"), await values(page, "after")]).toEqual(opened);
    await page.close();
  });

  test("says nothing of the shorter source after its end", async () => {
    const { page } = await open(browser, worse);
    const { x, y, width, height } = await boxOf(page, "after", "where");
    await page.mouse.click(x + width * 0.95, y + height / 2);
    await settled(page);
    expect(await readout(page, "before")).toContain("after its end");
    expect(await values(page, "before")).not.toMatch(/\d\d\sMiB/);
    expect(await values(page, "after")).toMatch(/\d\d\sMiB/);
    expect(await labelled(page, "after", "where")).toMatch(/At 0:3\d/);
    await page.close();
  });

  test("opens with as much of both as the shorter has, where one is far longer", async () => {
    const { page, complaints } = await open(browser, compare(THRASH, THRASH, "--after-since", "+20s", "--after-until", "+26s"));
    const [before, after] = [await readout(page, "before"), await readout(page, "after")];
    for (const side of [before, after]) expect(side).toMatch(/worst moment|tightest moment/);
    expect(before).toMatch(/showing .*\([56](\.\d)?\ss\)/);
    expect(await values(page, "before")).toMatch(/\d\sMiB/);
    expect(await values(page, "after")).toMatch(/\d\sMiB/);
    await page.keyboard.press("0");
    await settled(page);
    expect(await readout(page, "before")).not.toContain("showing");
    expect(await page.evaluate(() => location.hash)).toMatch(/v=/);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("zooms both at once, by keys, and keeps theme and view in its address", async () => {
    const { page } = await open(browser, worse);
    await page.keyboard.press("+");
    await page.keyboard.press("t");
    await settled(page);
    expect(await page.evaluate(() => location.hash)).toMatch(/v=[\d.]+-[\d.]+.*theme=light/);
    expect(await readout(page, "before")).toContain("showing");
    expect(await readout(page, "after")).toContain("showing");
    await page.keyboard.press("?");
    expect(await page.$eval("dialog.help", (it) => (it as HTMLDialogElement).open)).toBe(true);
    await page.close();
  });

  test("goes from a finding to the chart of its own side", async () => {
    const { page, complaints } = await open(browser, worse);
    await page.click('button.show[data-finding="0"]');
    await settled(page);
    await page.waitForFunction(() => {
      const box = document.querySelector(".flash")?.getBoundingClientRect();
      return box !== undefined && box.top < innerHeight && box.bottom > 0;
    });
    expect(await page.$eval(".flash", (it) => it.id)).toMatch(/^chart-after-/);
    await page.$eval("a[href='#finding-after-0']", (it) => (it as HTMLElement).click());
    await page.waitForFunction(() => document.activeElement?.id === "finding-after-0");
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("shows hostile names as text and runs none of them", async () => {
    const { page, complaints } = await open(browser, compare(HEALTHY, hostile()));
    expect(complaints).toEqual([]);
    expect(await page.$$("script:not([type])")).toHaveLength(1);
    expect(await page.$$("img")).toHaveLength(0);
    const text = await page.$eval("main", (it) => it.textContent ?? "");
    expect(text).toContain(HOSTILE.slice(0, 20));
    expect(text).not.toContain("\u202e");
    await page.close();
  });

  test.each([390, 320])("fits %i px without scrolling sideways", async (width) => {
    const { page, complaints } = await open(browser, worse, { width, height: 800 });
    await page.$$eval("details:not(.table)", (all) => all.forEach((it) => ((it as HTMLDetailsElement).open = true)));
    await settled(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("prints, and is complete text without a script", async () => {
    const printed = await open(browser, worse, { theme: "dark" });
    expect((await printed.page.pdf({ format: "A4" })).length).toBeGreaterThan(100_000);
    expect(printed.complaints).toEqual([]);
    await printed.page.close();
    const { page } = await open(browser, worse, { hasScript: false });
    const text = await page.$eval("body", (it) => (it as HTMLElement).innerText);
    for (const word of ["WORSE", "Evidence", "Fix", "Headroom", "Where memory went"]) expect(text).toContain(word);
    await page.close();
  });
});
