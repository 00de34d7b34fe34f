import type { Browser, Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { launch, obstacle, open, settled, type Look, type Opened } from "./browser";
import { OOM, removePages, sent, THRASH, type Sent } from "./pages";
import { PageServer } from "./server";

const reason = obstacle("PAGE_DATA");
if (reason !== null) console.warn(`the test of pages that a server sends is skipped: ${reason}`);

/** What every canvas shows, and what the cursor reads. */
const drawn = (page: Page) =>
  page.evaluate(() => ({
    charts: [...document.querySelectorAll("figure[data-chart]:not([hidden])")].map((figure) => [
      figure.id,
      figure.querySelector("canvas")?.toDataURL(),
      figure.querySelector(".values")?.textContent,
    ]),
    overview: document.querySelector<HTMLCanvasElement>(".overview canvas")?.toDataURL(),
    bars: [...document.querySelectorAll<HTMLElement>("button.bar")].map((bar) => [bar.ariaLabel, bar.style.left, bar.style.width]),
    readout: document.querySelector(".readout")?.textContent,
  }));
const readout = (page: Page) => page.$eval(".readout", (it) => it.textContent ?? "");
const notice = (page: Page) => page.evaluate(() => document.querySelector(".notice")?.textContent?.replaceAll("\u00a0", " ") ?? "");
/** Selects the second finding. */
async function selectSecond(page: Page): Promise<void> {
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  await page.waitForFunction(() => document.activeElement?.closest("[data-finding]")?.id === "finding-1");
}

/** Scrolls through the page, so that nothing waits to be drawn, and back. */
async function allSeen(page: Page): Promise<void> {
  await page.$$eval("details.quiet", (all) => all.forEach((it) => ((it as HTMLDetailsElement).open = true)));
  for (const figure of await page.$$("figure[data-chart]")) {
    await figure.evaluate((it) => it.scrollIntoView({ block: "center" }));
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 30))));
  }
  await page.evaluate(() => scrollTo(0, 0));
  await settled(page);
}

describe.skipIf(reason !== null)("the page in Chromium, from a server that has its data", () => {
  let browser: Browser;
  let whole: Sent;
  let first: Sent;
  beforeAll(async () => {
    browser = await launch();
    whole = sent(THRASH);
    first = sent(THRASH, "+0s", "+20s");
  });
  afterAll(async () => {
    removePages();
    await browser.close();
  });

  async function served(sent: Sent, run: (opened: Opened, server: PageServer) => Promise<void>, look: Look = {}): Promise<void> {
    const server = await PageServer.start(sent);
    try {
      const opened = await open(browser, server.address, look);
      await run(opened, server);
      await opened.page.close();
    } finally {
      await server.stop();
    }
  }

  async function ofFile(sent: Sent, look: Look = {}, act?: (page: Page) => Promise<void>) {
    const { page } = await open(browser, sent.embedded, look);
    await act?.(page);
    await allSeen(page);
    const result = await drawn(page);
    await page.close();
    return result;
  }

  test("draws what the page draws that is one file", async () => {
    await served(whole, async ({ page, complaints }, server) => {
      await server.taken();
      await allSeen(page);
      const shown = await drawn(page);
      expect(shown.charts.length).toBeGreaterThan(10);
      expect(shown).toEqual(await ofFile(whole));
      expect(complaints).toEqual([]);
    });
  });

  test("shows newer data as if it had been opened with them", async () => {
    await served(first, async ({ page, complaints }, server) => {
      await allSeen(page);
      const before = await drawn(page);
      server.answer(whole.data);
      await server.taken();
      await allSeen(page);
      const after = await drawn(page);
      expect(after).not.toEqual(before);
      expect(after).toEqual(await ofFile(whole));
      expect(complaints).toEqual([]);
    });
  });

  test("keeps zoom, cursor, selection and what is unfolded when newer data come", async () => {
    const look = { hash: "#v=5-15&c=12" };
    await served(
      first,
      async ({ page, complaints }, server) => {
        await selectSecond(page);
        await page.$$eval("details.consequence", (all) => all.forEach((it) => ((it as HTMLDetailsElement).open = true)));
        await settled(page);
        const [said, unfolded] = [await readout(page), await page.$$eval("details[open]", (all) => all.length)];
        expect(said).toContain("0:12");
        expect(said).toContain("pinned");
        expect(said).toContain("showing 0:05–0:15");
        expect(unfolded).toBeGreaterThan(0);
        server.answer(whole.data);
        await server.taken();
        expect(await readout(page)).toBe(said);
        expect(await page.$$eval("details[open]", (all) => all.length)).toBe(unfolded);
        await allSeen(page);
        expect(await page.evaluate(() => location.hash)).toBe(look.hash);
        expect(await drawn(page)).toEqual(await ofFile(whole, look, selectSecond));
        expect(complaints).toEqual([]);
      },
      look,
    );
  });

  test("keeps moments where the server forgets what came before", async () => {
    await served(
      whole,
      async ({ page }, server) => {
        const said = await readout(page);
        expect(said).toContain("showing 0:15–0:25");
        server.answer(sent(THRASH, "+10s").data);
        await server.taken();
        await settled(page);
        expect(await readout(page)).toBe(said);
        expect(await page.evaluate(() => location.hash)).toBe("#v=4.999-14.999&c=11.999");
      },
      { hash: "#v=15-25&c=22" },
    );
  });

  test("finds a moment that its text names where the server forgets what came before", async () => {
    await served(sent(OOM), async ({ page }, server) => {
      server.answer(sent(OOM, "+3s").data);
      await server.taken();
      const time = await page.$$eval("[data-at] button.moment", (all) => {
        (all.at(-1) as HTMLElement).click();
        return all.at(-1)?.textContent;
      });
      expect(time).toBe("0:07");
      await settled(page);
      expect(await readout(page)).toMatch(/^0:07 · pinned · OOM kill/);
    });
  });

  test("waits with newer data as long as the reader holds a pointer down", async () => {
    await served(first, async ({ page }, server) => {
      const ends = () => page.$eval(".overview", (it) => it.getAttribute("aria-label"));
      const before = await ends();
      const box = await (await page.$(".overview .u-over"))?.boundingBox();
      await page.mouse.move((box?.x ?? 0) + 100, (box?.y ?? 0) + 20);
      await page.mouse.down();
      await page.mouse.move((box?.x ?? 0) + 500, (box?.y ?? 0) + 20, { steps: 3 });
      const asked = server.answered;
      server.answer(whole.data);
      await new Promise((resolve) => setTimeout(resolve, 800));
      expect(await ends()).toBe(before);
      expect(server.answered).toBeLessThanOrEqual(asked + 2);
      await page.mouse.up();
      await server.taken();
      await settled(page);
      expect(await ends()).not.toBe(before);
      const [from = 0, to = 0] = (/v=([\d.]+)-([\d.]+)/.exec(await page.evaluate(() => location.hash)) ?? []).slice(1).map(Number);
      expect((to - from) / 20).toBeCloseTo(400 / (box?.width ?? 1), 2);
    });
  });

  const garbage = Buffer.from("<!doctype html>\n<p>Please log in</p>\n");
  test.each([
    ["an error", () => [Buffer.from("out of memory"), 500], "the server answered 500"],
    ["another page", () => [garbage, 200], "the charts' data is damaged: its head is not JSON"],
    ["JSON of something else", () => [Buffer.from('{"format":"memtide-page/2"}\n'), 200], "the charts' data is damaged: it is not memtide-page/1"],
    ["a head alone", () => [Buffer.from('{"format":"memtide-page/1"}\n'), 200], "the charts' data is damaged: its head lacks a list"],
    ["nothing", () => [Buffer.alloc(0), 200], "the charts' data is damaged: its first line has no end"],
    ["half of it", (data: Buffer) => [data.subarray(0, data.length - 500), 200], "the charts' data is damaged: it cannot be unpacked"],
  ] as [string, (data: Buffer) => [Buffer, number], string][])("says so where the server answers %s, and goes on", async (_, broken, why) => {
    await served(first, async ({ page, complaints }, server) => {
      await allSeen(page);
      const before = await drawn(page);
      server.answer(...broken(first.data));
      await server.taken();
      expect(await notice(page)).toBe(`No new data: ${why}. The charts show what there was until 0:20. The page asks again every 200 ms.`);
      const shown = await page.$eval(".notice", (it) => it.getBoundingClientRect().bottom - innerHeight);
      expect(shown).toBeLessThanOrEqual(0);
      expect(await drawn(page)).toEqual(before);
      server.answer(whole.data);
      await server.taken();
      expect(await notice(page)).toBe("");
      await allSeen(page);
      expect(await drawn(page)).toEqual(await ofFile(whole));
      expect(complaints.filter((line) => !line.startsWith("Failed to load resource"))).toEqual([]);
    });
  });

  test("says so where the server is gone", async () => {
    const server = await PageServer.start(first);
    const { page, complaints } = await open(browser, server.address);
    await server.stop();
    await page.waitForFunction(() => document.querySelector(".notice"));
    expect(await notice(page)).toContain("No new data: the server cannot be reached. The charts show what there was until 0:20.");
    expect(complaints.filter((line) => !line.startsWith("Failed to load resource"))).toEqual([]);
    await page.close();
  });

  test("is complete text until data come", async () => {
    const server = await PageServer.start(first);
    try {
      server.answer(Buffer.from("starting"), 503);
      const { page, complaints } = await open(browser, server.address);
      expect(await notice(page)).toBe(
        "No charts: the server answered 503. The text and the tables of this page are complete. The page asks again every 200 ms.",
      );
      expect(await page.$$("article.finding")).not.toHaveLength(0);
      server.answer(first.data);
      await server.taken();
      expect(await notice(page)).toBe("");
      await allSeen(page);
      expect(await drawn(page)).toEqual(await ofFile(first));
      expect(complaints.filter((line) => !line.startsWith("Failed to load resource"))).toEqual([]);
      await page.close();
    } finally {
      await server.stop();
    }
  });

  test("asks nobody where it is one file", async () => {
    const server = await PageServer.start(first);
    try {
      const { page, complaints } = await open(browser, first.embedded);
      const refused = await page.evaluate((url) => fetch(url).then(() => "", (error: unknown) => String(error)), `${server.address}data`);
      expect(refused).not.toBe("");
      expect(server.answered).toBe(0);
      expect(complaints.join()).toMatch(/Content Security Policy/);
      await page.close();
    } finally {
      await server.stop();
    }
  });
});
