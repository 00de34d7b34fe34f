/**
 * Pictures of reports, the same in every run: `vite-node screenshots.ts DIR [all]`, with MEMTIDE naming the binary. Makes
 * the guide's, `report-starved.png`, that of docs/report.md, `report-light.png`, and a picture of each chart that it explains;
 * with `all` also each kind of page as a whole, wide and narrow, light and dark.
 */

import { join } from "node:path";
import type { Browser } from "puppeteer-core";

import { launch, obstacle, open, settled, type Look } from "./test/page/browser";
import { compare, DIRTY, HEALTHY, NODES, OOM, removePages, report, STARVED, THRASH } from "./test/page/pages";

const SOURCES = { "swap-thrash": THRASH, dirty: DIRTY, healthy: HEALTHY, nodes: NODES, oom: OOM } as const;
const WIDTHS = { wide: 1440, narrow: 390 } as const;

async function picture(browser: Browser, page: string, path: string, look: Look, isWhole: boolean): Promise<void> {
  const opened = await open(browser, page, look);
  await settled(opened.page);
  await opened.page.screenshot({ path, fullPage: isWhole });
  await opened.page.close();
  console.log(path);
}

/** The figures that docs/report.md explains. */
const EXPLAINED = ["where", "free", "pressure"] as const;

async function pictureFigures(browser: Browser, page: string, folder: string): Promise<void> {
  const opened = await open(browser, page, { width: 1440, height: 1180, theme: "light" });
  for (const chart of EXPLAINED) {
    const figure = await opened.page.$(`#chart-${chart}`);
    if (figure === null) throw new Error(`the page has no chart ${chart}`);
    // What sticks to the window's upper edge would cover it.
    await opened.page.$eval("#navigator", (it) => ((it as HTMLElement).style.position = "static"));
    await figure.scrollIntoView();
    await settled(opened.page);
    const path = join(folder, `report-${chart}.png`);
    await figure.screenshot({ path });
    console.log(path);
  }
  await opened.page.close();
}

async function wholePages(browser: Browser, page: string, name: string, folder: string): Promise<void> {
  for (const [size, width] of Object.entries(WIDTHS)) {
    for (const theme of ["light", "dark"] as const) {
      await picture(browser, page, join(folder, `report-${name}-${size}-${theme}.png`), { width, height: 900, theme }, true);
    }
  }
}

async function main(folder: string, isAll: boolean): Promise<void> {
  const reason = obstacle("MEMTIDE");
  if (reason !== null) throw new Error(reason);
  const browser = await launch();
  try {
    const thrash = report(THRASH, "--title", "swap-thrash.jsonl.gz");
    await picture(browser, thrash, join(folder, "report-light.png"), { width: 1440, height: 1180, theme: "light" }, false);
    await pictureFigures(browser, thrash, folder);
    const starved = report(STARVED, "--title", "a host on which search is slow");
    await picture(browser, starved, join(folder, "report-starved.png"), { width: 1440, height: 1180, theme: "light" }, false);
    if (!isAll) return;
    for (const [name, source] of Object.entries(SOURCES)) await wholePages(browser, report(source), name, folder);
    await wholePages(browser, compare(HEALTHY, THRASH), "compare", folder);
  } finally {
    removePages();
    await browser.close();
  }
}

const [folder, all] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: scripts/web.sh pictures DIR [all]");
await main(folder, all === "all");
