/** A headless Chromium that opens pages from files, or from a server on this host, without a network, and remembers every complaint. */

import { existsSync } from "node:fs";
import puppeteer, { type Browser, type Page } from "puppeteer-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function chromium(): string | null {
  return [process.env.CHROMIUM ?? "", ...PLACES].find((path) => path !== "" && existsSync(path)) ?? null;
}

/** Why there is no page test here; null where there is one, by programs that these variables name. In CI its absence is an error. */
export function obstacle(...programs: readonly ("MEMTIDE" | "PAGE_DATA")[]): string | null {
  const unnamed = programs.filter((name) => process.env[name] === undefined);
  const missing = [
    chromium() === null ? "no chromium (help: apt-get install chromium, or set CHROMIUM)" : "",
    ...unnamed.map((name) => `${name} does not name a built program (help: scripts/web.sh test)`),
  ].filter((reason) => reason !== "");
  if (missing.length === 0) return null;
  if (process.env.CI === "true") throw new Error(`the page test cannot run: ${missing.join("; ")}`);
  return missing.join("; ");
}

export function launch(): Promise<Browser> {
  return puppeteer.launch({
    executablePath: chromium() ?? "",
    // Chromium's own sandbox needs privileges that containers rarely give.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
}

export interface Look {
  width?: number;
  height?: number;
  theme?: "light" | "dark";
  hash?: string;
  hasScript?: boolean;
  /** Colours that the reader's system forces upon all pages. */
  isForced?: boolean;
  /** The reader has asked for less motion. */
  isStill?: boolean;
  isTouch?: boolean;
  /** Pixels of the screen in one of the page. */
  ratio?: number;
  /** What is written onto canvases is kept in `data-written` of the page's root. */
  isWatched?: boolean;
}

export interface Opened {
  page: Page;
  /** Errors, warnings of the console, violations of the policy, dialogs, requests to others. */
  complaints: string[];
}

/** Opens a file, or an address. */
export async function open(browser: Browser, place: string, look: Look = {}): Promise<Opened> {
  const address = place.startsWith("http:") ? place : `file://${place}`;
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warn", "assert"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL("/", address).href)) complaints.push(`request ${request.url()}`);
  });
  await page.setJavaScriptEnabled(look.hasScript ?? true);
  await page.setViewport({ width: look.width ?? 1440, height: look.height ?? 1000, hasTouch: look.isTouch ?? false, deviceScaleFactor: look.ratio ?? 1 });
  if (look.isWatched === true) await page.evaluateOnNewDocument(watch);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: look.theme ?? "light" }]);
  if (look.isForced === true || look.isStill === true) await emulate(page, look);
  await page.goto(address + (look.hash ?? ""));
  if (look.hasScript ?? true) {
    await page.waitForFunction(() => document.documentElement.dataset.drawn === "all" || document.querySelector(".notice"));
  }
  return { page, complaints };
}

/** Runs in the page, before its own program. */
function watch(): void {
  const original = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text: string, x: number, y: number) {
    const { width } = this.measureText(text);
    const at = this.getTransform().transformPoint({ x, y }).x;
    const before = this.textAlign === "right" || this.textAlign === "end" ? width : this.textAlign === "center" ? width / 2 : 0;
    const chart = this.canvas.closest<HTMLElement>("figure")?.dataset.chart ?? "";
    const root = document.documentElement;
    const known = JSON.parse(root.dataset.written ?? "[]") as unknown[];
    const one = { text, from: Math.round(at - before), to: Math.round(at - before + width), width: this.canvas.width, chart };
    root.dataset.written = JSON.stringify([...known, one]);
    original.call(this, text, x, y);
  };
}

/** What puppeteer does not let through, the browser's own protocol does. */
async function emulate(page: Page, look: Look): Promise<void> {
  const session = await page.createCDPSession();
  const features = [
    { name: "prefers-color-scheme", value: look.theme ?? "light" },
    { name: "forced-colors", value: look.isForced === true ? "active" : "none" },
    { name: "prefers-reduced-motion", value: look.isStill === true ? "reduce" : "no-preference" },
  ];
  await session.send("Emulation.setEmulatedMedia", { features });
}

/** Waits until the page has drawn and told what changed. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 250)));
}
