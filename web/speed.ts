/**
 * How long a reader of `memtide serve` waits: for the page of a whole recording, from the click to its text, to its first
 * chart and to all of them, and for a zoom that fetches every sample. `scripts/web.sh speed RECORDING [RUNS [MEMTIDE...]]`
 * asks each program in turn, each time with a server that has answered nothing yet; prints medians and the range.
 */

import { spawn } from "node:child_process";
import { launch } from "./test/page/browser";

const [recording = "", runs = "5", ...programs] = process.argv.slice(2);

interface Waited {
  html: number;
  first: number;
  all: number;
  zoom: number;
  again: number;
  mib: number;
}

/** Runs in the page before its own program: notes when the first canvas has been painted. */
function watch(): void {
  const observer = new MutationObserver(() => {
    if (document.querySelector("figure[data-chart] canvas, #navigator canvas") === null) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => performance.mark("first")));
  });
  observer.observe(document, { childList: true, subtree: true });
}

async function started(program: string): Promise<{ address: string; pid: number; stop: () => void }> {
  const child = spawn(program, ["serve", recording, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, TZ: "UTC" } });
  const address = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (bytes: Buffer) => {
      said += bytes.toString();
      const found = /open {2}(http:\S+)/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.on("exit", () => reject(new Error(said)));
  });
  return { address, pid: child.pid ?? 0, stop: () => void child.removeAllListeners("exit").kill("SIGTERM") };
}

async function measured(program: string): Promise<Waited> {
  const { readFileSync } = await import("node:fs");
  const server = await started(program);
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1440, height: 1000 });
    await page.evaluateOnNewDocument(watch);
    const look = async () => {
      await page.goto(`${server.address}?since=%2B0s`);
      await page.waitForFunction(() => document.documentElement.dataset.drawn === "all");
      return page.evaluate(() => {
        const [load] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
        const mark = (name: string) => performance.getEntriesByName(name)[0]?.startTime ?? NaN;
        return { html: load?.responseEnd ?? NaN, first: mark("first"), all: mark("memtide-drawn") };
      });
    };
    const opened = await look();
    // Two hours, by a link: a single step. Nothing else waits.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)));
    const zooms: number[] = [];
    for (const from of [100_000, 200_000, 300_000, 400_000]) {
      zooms.push(
        await page.evaluate(async (from: number) => {
          const root = document.documentElement;
          const before = root.dataset.closer;
          const begun = performance.now();
          location.hash = `#v=${from}-${from + 7200}`;
          while (root.dataset.closer === before && performance.now() < begun + 10_000) await new Promise((resolve) => setTimeout(resolve, 2));
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
          return performance.now() - begun;
        }, from),
      );
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 400)));
    }
    await page.goto("about:blank");
    const again = await look();
    const mib = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]) / 1024;
    return { ...opened, zoom: zooms.sort((a, b) => a - b)[1] ?? NaN, again: again.first, mib };
  } finally {
    await browser.close();
    server.stop();
  }
}

const all = new Map<string, Waited[]>();
for (let run = 0; run < Number(runs); run++) {
  for (const program of programs) all.set(program, [...(all.get(program) ?? []), await measured(program)]);
}
for (const [program, waited] of all) {
  const shown = (name: keyof Waited) => {
    const sorted = waited.map((one) => one[name]).sort((a, b) => a - b);
    const [least, median, most] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted[sorted.length - 1]];
    return `${median?.toFixed(0)} (${least?.toFixed(0)}–${most?.toFixed(0)})`;
  };
  console.log(
    `${program}: text ${shown("html")} ms, first chart ${shown("first")}, all ${shown("all")}; a zoom ${shown("zoom")}; opened again, first chart ${shown("again")}; server's peak ${shown("mib")} MiB`,
  );
}
