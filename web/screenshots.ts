/**
 * Pictures of reports, the same in every run: `vite-node screenshots.ts DIR [all]`, with MEMTIDE naming the binary. Makes
 * README's, `report-light.png` and `report-dark.png`; with `all` also each kind of page as a whole, wide and narrow.
 */

import { join } from "node:path";
import type { Browser } from "puppeteer-core";

import { launch, obstacle, open, settled, type Look } from "./test/page/browser";
import { DIRTY, HEALTHY, NODES, removePages, report, THRASH } from "./test/page/pages";

const SOURCES = { "swap-thrash": THRASH, dirty: DIRTY, healthy: HEALTHY, nodes: NODES } as const;
const WIDTHS = { wide: 1440, narrow: 390 } as const;

async function picture(browser: Browser, page: string, path: string, look: Look, isWhole: boolean): Promise<void> {
  const opened = await open(browser, page, look);
  await settled(opened.page);
  await opened.page.screenshot({ path, fullPage: isWhole });
  await opened.page.close();
  console.log(path);
}

async function main(folder: string, isAll: boolean): Promise<void> {
  const reason = obstacle();
  if (reason !== null) throw new Error(reason);
  const browser = await launch();
  try {
    for (const [name, source] of Object.entries(SOURCES)) {
      const page = report(source);
      if (name === "swap-thrash") {
        for (const theme of ["light", "dark"] as const) {
          await picture(browser, page, join(folder, `report-${theme}.png`), { width: 1440, height: 1180, theme }, false);
        }
      }
      if (!isAll) break;
      for (const [size, width] of Object.entries(WIDTHS)) {
        for (const theme of ["light", "dark"] as const) {
          const path = join(folder, `report-${name}-${size}-${theme}.png`);
          await picture(browser, page, path, { width, height: 900, theme }, true);
        }
      }
    }
  } finally {
    removePages();
    await browser.close();
  }
}

const [folder, all] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: scripts/web.sh pictures DIR [all]");
await main(folder, all === "all");
