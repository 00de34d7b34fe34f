import { type ChildProcess, spawn } from "node:child_process";
import type { Browser, Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { launch, obstacle, open, settled } from "./browser";
import { hostile, removePages, STARVED, THRASH } from "./pages";

const reason = obstacle("MEMTIDE");
if (reason !== null) console.warn(`the test of pages that memtide serve sends is skipped: ${reason}`);

/** A server of the binary that MEMTIDE names, on a free port. */
class Serving {
  private constructor(
    readonly address: string,
    readonly process: ChildProcess,
  ) {}

  static start(...args: string[]): Promise<Serving> {
    const child = spawn(process.env.MEMTIDE ?? "memtide", ["serve", "--listen", "127.0.0.1:0", ...args], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, TZ: "UTC" },
    });
    return new Promise((resolve, reject) => {
      let said = "";
      child.stderr.on("data", (bytes: Buffer) => {
        said += bytes.toString();
        const address = /open {2}(http:\S+)/.exec(said)?.[1];
        if (address !== undefined) resolve(new Serving(address, child));
      });
      child.on("exit", () => reject(new Error(said)));
    });
  }

  stop(): void {
    this.process.removeAllListeners("exit");
    this.process.kill("SIGTERM");
  }
}

const samples = (page: Page) => page.$eval(".overview", (it) => it.getAttribute("aria-label") ?? "");
const headline = (page: Page) => page.$eval("#headline", (it) => it.textContent ?? "");

describe.skipIf(reason !== null)("the page in Chromium, from memtide serve", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => {
    removePages();
    await browser.close();
  });

  async function served(args: string[], run: (serving: Serving) => Promise<void>): Promise<void> {
    const serving = await Serving.start(...args);
    try {
      await run(serving);
    } finally {
      serving.stop();
    }
  }

  test("draws a capture, and asks nothing more", async () => {
    await served([THRASH], async ({ address }) => {
      const { page, complaints } = await open(browser, address);
      const asked: string[] = [];
      page.on("request", (request) => asked.push(request.url()));
      expect(await page.$$("figure[data-chart] canvas")).not.toHaveLength(0);
      expect(await headline(page)).toContain("needs more memory than it has");
      await new Promise((resolve) => setTimeout(resolve, 3000));
      expect([complaints, asked]).toEqual([[], []]);
      await page.close();
    });
  });

  test("names of strangers are text", async () => {
    await served([hostile()], async ({ address }) => {
      const { page, complaints } = await open(browser, `${address}?since=%2B1s`);
      expect(await page.evaluate(() => document.body.textContent?.includes("<script>alert(1)"))).toBe(true);
      expect(complaints).toEqual([]);
      await page.close();
    });
  });

  test("follows this host: charts and text, while what is unfolded and focused stays", async () => {
    await served(["--live", "--every", "500ms"], async ({ address }) => {
      const { page, complaints } = await open(browser, address);
      await page.waitForFunction(() => document.querySelector("#navigator .overview") !== null);
      const before = await samples(page);
      const whole = await page.$eval("#recorded", (it) => it.textContent ?? "");
      await page.$eval("#clear details", (it) => ((it as HTMLDetailsElement).open = true));
      await page.focus("#clear summary");
      await page.waitForFunction((was: string) => document.querySelector("#recorded")?.textContent !== was, {}, whole);
      expect(await samples(page)).not.toBe(before);
      expect(await page.$eval("#clear details", (it) => (it as HTMLDetailsElement).open)).toBe(true);
      expect(await page.evaluate(() => document.activeElement?.closest("#clear") !== null)).toBe(true);
      expect(await page.$$("main > section#verdict, main > #charts, main > #navigator")).toHaveLength(3);
      expect(complaints).toEqual([]);
      await page.close();
    });
  });

  test.each([true, false])("asks when an event says so, and at times where the browser knows no events (events: %s)", async (hasEvents) => {
    await served(["--live", "--every", "30s"], async ({ address }) => {
      const page = await browser.newPage();
      if (!hasEvents) await page.evaluateOnNewDocument(() => Reflect.deleteProperty(window, "EventSource"));
      const asked: string[] = [];
      page.on("request", (request) => asked.push(new URL(request.url()).pathname));
      await page.goto(address);
      await new Promise((resolve) => setTimeout(resolve, 3000));
      expect(asked.includes("/changes")).toBe(hasEvents);
      asked.length = 0;
      await new Promise((resolve) => setTimeout(resolve, 5000));
      // Nothing new has come.
      if (hasEvents) expect(asked).toEqual([]);
      else expect(asked.filter((path) => path === "/data").length).toBeGreaterThanOrEqual(2);
      await page.close();
    });
  });

  test("says so where the server ends, and goes on with the next", async () => {
    const first = await Serving.start("--live");
    const { page } = await open(browser, first.address);
    const port = new URL(first.address).port;
    first.stop();
    await page.waitForFunction(() => document.querySelector(".notice")?.textContent?.includes("the server cannot be reached"));
    const second = await Serving.start("--live", "--listen", port);
    await page.waitForFunction(() => document.querySelector(".notice") === null);
    second.stop();
    await page.close();
  });

  test("a range is chosen by keyboard alone, and its address is a link to it", async () => {
    await served([STARVED], async ({ address }) => {
      const { page, complaints } = await open(browser, address);
      const whole = await samples(page);
      await page.focus("input[name=since]");
      await page.keyboard.type("+10s");
      await page.keyboard.press("Tab");
      await page.keyboard.type("+30s");
      await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
      await page.waitForFunction(() => document.documentElement.dataset.drawn === "all");
      await settled(page);
      expect(page.url()).toContain("?since=%2B10s&until=%2B30s");
      expect(await samples(page)).not.toBe(whole);
      expect(await page.$eval("input[name=since]", (it) => (it as HTMLInputElement).value)).toBe("+10s");
      expect(complaints).toEqual([]);
      await page.close();
    });
  });

  test.each([390, 1280])("has no sideways scrolling at %i px", async (width) => {
    await served([THRASH], async ({ address }) => {
      const { page } = await open(browser, address, { width });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      await page.close();
    });
  });
});
