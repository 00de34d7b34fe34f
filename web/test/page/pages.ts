/** Makes the pages that the page test looks at, with the binary that MEMTIDE names, from captures of the repository. */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateRawSync, gunzipSync, gzipSync } from "node:zlib";

import type { Meta } from "../../src/page";
import { pack, random, type Table } from "../unit/pack";

const corpus = fileURLToPath(new URL("../../../corpus/", import.meta.url));

export const THRASH = `${corpus}captures/swap-thrash--512m-swapdisk/capture.jsonl.gz`;
export const DIRTY = `${corpus}captures/dirty-throttling--1g-20mbps/capture.jsonl.gz`;
export const HEALTHY = `${corpus}captures/healthy--idle/capture.jsonl.gz`;
export const OOM = `${corpus}captures/cgroup-oom--96m/capture.jsonl.gz`;
export const STARVED = `${corpus}captures/cgroup-cache-starved--7.2-1g-256m/capture.jsonl.gz`;
export const NODES = `${corpus}captures/node-reclaim--dist21/capture.jsonl.gz`;

export const HOSTILE = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'\u202e`;

const folder = mkdtempSync(join(tmpdir(), "memtide-page-"));
let count = 0;

/** Removes all pages. */
export function removePages(): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Writes the report of a source; gives the page's path. */
export function report(source: string, ...options: string[]): string {
  const page = join(folder, `${(count += 1)}.html`);
  execFileSync(process.env.MEMTIDE ?? "memtide", ["report", source, "-o", page, ...options], { stdio: ["ignore", "ignore", "pipe"] });
  return page;
}

/** What the server of a page sends, of a part of a source. */
export interface Sent {
  /** The path of the page as one file, which has the same data. */
  embedded: string;
  /** The page that asks for its data. */
  page: Buffer;
  /** The answer to that. */
  data: Buffer;
}

/** Writes what a server sends, with the example `page_data` of the crate `answers`. */
export function sent(source: string, ...range: string[]): Sent {
  const place = join(folder, `${(count += 1)}`);
  execFileSync(process.env.PAGE_DATA ?? "page_data", [source, place, ...range], { stdio: ["ignore", "ignore", "pipe"] });
  const read = (name: string) => readFileSync(join(place, name));
  return { embedded: join(place, "embedded.html"), page: read("page.html"), data: read("data") };
}

/** Writes the comparison of two sources; gives the page's path. Its exit code says which way it went. */
export function compare(before: string, after: string, ...options: string[]): string {
  const page = join(folder, `${(count += 1)}.html`);
  const done = spawnSync(process.env.MEMTIDE ?? "memtide", ["compare", before, after, "-o", page, ...options], { encoding: "utf8" });
  if (!existsSync(page)) throw new Error(done.stderr);
  return page;
}

/** A capture in which every process "hog" has a name that tries to be markup. */
export function hostile(): string {
  const text = gunzipSync(readFileSync(THRASH)).toString("utf8");
  const name = JSON.stringify(HOSTILE).slice(1, -1);
  const source = join(folder, "hostile.jsonl.gz");
  writeFileSync(source, gzipSync(text.replace(/\bhog\b/g, () => name)));
  return source;
}

const WEEK_S = 604_800;

/**
 * The page of a host watched for a week: the charts of another page, with 1,500 columns of the whole range, each minute of
 * it, and an hour by the second, filled with numbers.
 */
export function week(from: string): string {
  const html = readFileSync(from, "utf8");
  const block = (id: string) => new RegExp(`(<script type="[^"]*" id="${id}">)([^<]*)`);
  const meta = JSON.parse(block("memtide-page").exec(html)?.[2] ?? "") as Meta;
  const levels = [
    { from_s: 0, to_s: WEEK_S, rows: 1500 },
    { from_s: 0, to_s: WEEK_S, rows: 10_080 },
    { from_s: 300_000, to_s: 303_600, rows: 3_601 },
  ];
  const next = random(1);
  const tables = levels.map((level): Table => {
    const step = ((level.to_s - level.from_s) * 1000) / (level.rows - 1);
    const times = Array.from({ length: level.rows }, (_, row) => Math.round(level.from_s * 1000 + row * step));
    const series = meta.charts.flatMap((chart) =>
      chart.series.map((one) => {
        const most = (chart.top ?? 1e6) / chart.series.length / one.scale;
        const mean = times.map((ms) => Math.round((0.5 + 0.3 * Math.sin(ms / 7e6) + 0.2 * next()) * most));
        return level.rows !== 3_601 ? [mean, mean.map((v) => Math.round(v * 0.8)), mean.map((v) => Math.round(v * 1.1))] : [mean];
      }),
    );
    return { times, series };
  });
  const week: Meta = { ...meta, span_s: WEEK_S, worst_s: 301_000, interval_s: 1, levels, gaps: [[100_000, 110_000, 10_000]] };
  const data = deflateRawSync(pack(tables)).toString("base64");
  const page = join(folder, "week.html");
  writeFileSync(
    page,
    html
      .replace(block("memtide-page"), (_, tag: string) => tag + JSON.stringify(week).replace(/</g, "\\u003c"))
      .replace(block("memtide-data"), (_, tag: string) => tag + data),
  );
  return page;
}

/** The same page with rates a hundred times as high, and more. */
export function larger(from: string): string {
  const page = join(folder, "larger.html");
  const rates = /("id":"(?:refaults|reclaim)".*?"limits")/g;
  const scaled = (chart: string) => chart.replace(/"scale":([\d.e+-]+)/g, (_, scale: string) => `"scale":${Number(scale) * 500}`);
  writeFileSync(page, readFileSync(from, "utf8").replace(rates, scaled));
  return page;
}

/** Writes the page of the lab's score of labelled captures. */
export function score(...captures: readonly string[]): string {
  const page = join(folder, `${(count += 1)}.html`);
  const cases = captures.map((capture) => dirname(capture));
  const done = spawnSync(process.env.MEMTIDE ?? "memtide", ["lab", "score", ...cases, "-o", page], { encoding: "utf8" });
  if (!existsSync(page)) throw new Error(done.stderr);
  return page;
}

/** Writes a page with the blocks that the page of a scenario has: arms with names that do not break, and panels of curves. */
export function labRun(...captures: readonly string[]): string {
  const page = join(folder, "lab-run.html");
  const arm = `<section class="arm is-ok"><h2>${"arm-".repeat(20)}</h2><ul><li><b>oom-cgroup</b> ${"/a".repeat(60)}</li></ul></section>`;
  const panel = '<figure><figcaption>arm</figcaption><svg class="panel" viewBox="0 0 480 240"></svg></figure>';
  const main = `<main class="lab"><div class="arms">${arm}${arm}</div><section class="drawn"><div class="panels">${panel}${panel}</div></section></main>`;
  writeFileSync(page, readFileSync(score(...captures), "utf8").replace(/<main.*<\/main>/s, main));
  return page;
}

/** The same page with its data cut in the middle. */
export function cut(from: string): string {
  const page = join(folder, "cut.html");
  const html = readFileSync(from, "utf8");
  writeFileSync(
    page,
    html.replace(/(id="memtide-data">)([^<]*)/, (_, tag: string, data: string) => tag + data.slice(0, data.length / 8)),
  );
  return page;
}
