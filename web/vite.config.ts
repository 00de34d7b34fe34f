import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, transformWithEsbuild, type Plugin } from "vite";

import { heapVariables, variables } from "./src/palette";

const root = new URL(".", import.meta.url).pathname;
const source = join(root, "src");
const uplot = join(root, "node_modules/uplot/dist");

/** The sheets of the report's page, in this order behind the colours and uPlot's own. */
const PAGE = ["page.css", "headroom.css"];
/** What the page of `memtide compare` has beside them. */
const COMPARE = ["compare.css"];
/** What the pages of `memtide lab` have beside them. */
const LAB = ["figure.css", "lab.css"];
/** What a drawing of the lab has that stands alone. */
const FIGURE = ["figure.css"];
/** What a page has beside the report's sheet that shows a process's memory (`memtide explain`). */
const EXPLAIN = ["heap_cells.css", "explain.css"];
/** What a page has beside them that a server sends. */
const SERVED = ["served.css"];

/** Which program is built: that of a page that is one file, or of one that a server sends. */
const PROGRAM = process.env.MEMTIDE_PROGRAM === "served" ? "served" : "page";

function styles(): Plugin {
  return {
    name: "memtide-styles",
    async generateBundle() {
      const read = (name: string) => readFileSync(join(source, name), "utf8");
      const basis = [variables(), withoutUnused(readFileSync(join(uplot, "uPlot.min.css"), "utf8"))];
      for (const [fileName, sheets] of [
        ["page.css", [...basis, ...PAGE.map(read)]],
        ["compare.css", COMPARE.map(read)],
        ["lab.css", LAB.map(read)],
        ["figure.css", [variables(), ...FIGURE.map(read)]],
        ["explain.css", [heapVariables(), ...EXPLAIN.map(read)]],
        ["served.css", SERVED.map(read)],
      ] as const) {
        const { code } = await transformWithEsbuild(sheets.join("\n"), fileName, { loader: "css", minify: true });
        this.emitFile({ type: "asset", fileName, source: code });
      }
    },
  };
}

/** uPlot's own legend, title and cursor are not used: the page has its own. */
function withoutUnused(css: string): string {
  const rules = css.match(/[^{}]+\{[^{}]*\}/g) ?? [];
  return rules.filter((rule) => !/^\.u-(title|legend|inline|series|cursor|hz|vt|axis\.u-off)/.test(rule)).join("\n");
}

/** What uPlot offers and nobody uses here, as we paint curves ourselves; without these lines a bundler leaves it out. */
const OFFERS: readonly (readonly [line: string, instead: string])[] = [
  ["const linearPath = linear() ;", "const linearPath = null;"],
  ["const pointsPath = points() ;", "const pointsPath = null;"],
  ["\t\tpoints,\n", ""],
  ["uPlot.addGap = addGap;", ""],
  ["uPlot.clipGaps = clipGaps;", ""],
  ["uPlot.orient   = orient;", ""],
  ["(paths.linear  = linear);", ""],
  ["(paths.stepped = stepped);", ""],
  ["(paths.bars    = bars);", ""],
  ["(paths.spline  = monotoneCubic);", ""],
  ["uPlot.join = join;", ""],
  ["const showLegend = legend.show;", "const showLegend = false;"],
  // Series: a plot has an empty one, for its scales.
  ["const mode = self.mode;", "const mode = 1;"],
  ["\t\tseries: drawSeries,\n", "\t\tseries: () => null,\n"],
  ["self.addSeries = addSeries;", ""],
  ["self.delSeries = delSeries;", ""],
  ["self.addBand = addBand;", ""],
  ["self.setBand = setBand;", ""],
  ["self.delBand = delBand;", ""],
  ["const cursorFocus = focus.prox >= 0;", "const cursorFocus = false;"],
  // Cursors of several plots that move together: ours do, by themselves.
  ["const sync = _sync(syncKey);", ""],
  ["sync.sub(self);", ""],
  ["sync.unsub(self);", ""],
  ["\t\t\tsync.pub(type, src, x, y, w, h, i);\n", "\t\t\t{}\n"],
  ["uPlot.sync = _sync;", ""],
  // Its axes of dates: ours know the host's clock.
  ["const [ timeIncrsMs, _timeAxisStampsMs, timeAxisSplitsMs ] = genTimeStuffs(1);", "const timeIncrsMs = [];"],
  ["const [ timeIncrsS,  _timeAxisStampsS,  timeAxisSplitsS  ] = genTimeStuffs(1e-3);", "const timeIncrsS = [];"],
  ["(ms == 1 ? timeAxisSplitsMs(_tzDate) : timeAxisSplitsS(_tzDate))", "null"],
  ["(opts.fmtDate || fmtDate)", "null"],
  ["(opts.tzDate || (ts => new Date(round(ts / ms))))", "null"],
  ["const _timeSeriesVal  = timeSeriesVal(_tzDate, timeSeriesStamp(_timeSeriesStamp, _fmtDate));\n", ""],
  ["let isTime = mode == 1 && scales[s.scale].time;", "const isTime = false;"],
  ["let isTime = sc.time;", "const isTime = false;"],
  ["uPlot.fmtDate = fmtDate;", ""],
  ["uPlot.tzDate  = tzDate;", ""],
  ["timeAxisVals(_tzDate, timeAxisStamps((ms == 1 ? _timeAxisStampsMs : _timeAxisStampsS), _fmtDate))", "null"],
];

/** The page has 120 KiB for its program, of which these would take 16. */
function leaner(): Plugin {
  return {
    name: "memtide-leaner-uplot",
    transform(code, id) {
      if (!id.endsWith("uPlot.esm.js")) return null;
      for (const [line] of OFFERS) if (!code.includes(line)) throw new Error(`uPlot has changed: no \`${line}\``);
      return { code: OFFERS.reduce((rest, [line, instead]) => rest.replaceAll(line, instead), code), map: null };
    },
  };
}

/** uPlot's licence asks that its notice stays; minifying drops all comments. */
function banner(): Plugin {
  const [address = ""] = readFileSync(join(uplot, "uPlot.iife.min.js"), "utf8").split("\n");
  const owner = /Copyright .*/.exec(readFileSync(join(uplot, "../LICENSE"), "utf8"))?.[0] ?? "";
  const notice = `${address.replace(/ ?\*\/$/, "")} ${owner}, MIT licence */\n`;
  return {
    name: "memtide-banner",
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) if (file.type === "chunk") file.code = notice + file.code;
    },
  };
}

export default defineConfig({
  root,
  plugins: [leaner(), styles(), banner()],
  build: {
    target: "es2022",
    outDir: process.env.MEMTIDE_ASSETS ?? join(root, "../crates/report/assets"),
    emptyOutDir: false,
    copyPublicDir: false,
    sourcemap: false,
    reportCompressedSize: false,
    lib: {
      entry: join(source, PROGRAM === "served" ? "served.ts" : "main.ts"),
      formats: ["iife"],
      name: "memtide",
      fileName: () => `${PROGRAM}.js`,
    },
  },
  esbuild: { legalComments: "none", charset: "utf8" },
});
