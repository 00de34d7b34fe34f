/** Puts the page's parts together. Without this program the page is complete text; with it, it has charts. */

import { ChartView } from "./chart";
import type { Context } from "./context";
import { decode, inflate } from "./data";
import { all, element } from "./dom";
import { copyButtons, Findings } from "./findings";
import { helpDialog } from "./help";
import { keyboard } from "./keys";
import { Levels, nearest } from "./levels";
import { Navigator } from "./navigator";
import { readMeta } from "./page";
import { printing } from "./print";
import { isChoice, ThemeChoice } from "./theme";
import { Clock } from "./time";
import { Looking, readLink, writeLink } from "./view";

/** A view shorter than so many samples is not worth drawing. */
const LEAST_SAMPLES = 4;

async function context(theme: ThemeChoice): Promise<Context | null> {
  const meta = readMeta(document.getElementById("memtide-page")?.textContent ?? "");
  // A single look has nothing over time: the page's text is all there is.
  if (meta.charts.length === 0 || (meta.levels[0]?.rows ?? 0) < 2) return null;
  const bytes = await inflate(document.getElementById("memtide-data")?.textContent ?? "");
  const levels = new Levels(decode(bytes, meta), meta.gaps);
  const least = Math.max(LEAST_SAMPLES * (meta.interval_s ?? 0.5), 0.5);
  const looking = new Looking({ from: 0, to: Math.max(meta.span_s, 1e-3) }, meta.worst_s, least);
  return { meta, levels, clock: new Clock(meta), looking, theme };
}

function start(context: Context | null): void {
  if (context === null) {
    document.documentElement.classList.add("has-no-charts");
    document.documentElement.dataset.drawn = "all";
    return;
  }
  const host = document.getElementById("navigator");
  if (host === null) throw new Error("this page has no place for its charts");
  const { looking, theme } = context;
  const help = helpDialog();
  applyLink(context);
  const findings = new Findings(context);
  const navigator = new Navigator(host, context, (index) => findings.goTo(index), help);
  const charts = chartViews(context);
  wire(context, charts, navigator);
  keyboard({ looking, findings, theme, help, neighbour: (at, by) => neighbour(charts, at, by) });
}

function chartViews(context: Context): ChartView[] {
  return all("figure[data-chart]").flatMap((figure) => {
    const index = context.meta.charts.findIndex((chart) => chart.id === figure.dataset.chart);
    return index < 0 ? [] : [new ChartView(figure, index, context)];
  });
}

/** Changes of state go to what is on the screen; the rest follows when it gets there. */
function wire(context: Context, charts: ChartView[], navigator: Navigator): void {
  const { looking, theme } = context;
  looking.onChange((changed) => {
    if (changed.has("view")) navigator.showView();
    navigator.showCursor();
    for (const chart of charts) {
      if (changed.has("view") || changed.has("finding") || !chart.isSeen) chart.refresh();
      else chart.showCursor();
    }
    soon(() => settle(context, charts));
  });
  theme.onChange(() => {
    navigator.recolour();
    for (const chart of charts) chart.recolour();
    soon(() => settle(context, charts));
  });
  const fit = () => {
    navigator.fit();
    for (const chart of charts) chart.fit();
  };
  printing(charts, navigator, theme, fit);
  addEventListener("hashchange", () => applyLink(context));
  watchSize(fit);
  watchSight(charts);
}

let waiting = 0;

/** Runs `act` when nothing has changed for a moment. */
function soon(act: () => void): void {
  clearTimeout(waiting);
  waiting = window.setTimeout(act, 150);
}

/** What need not follow every movement: the address and the labels for screen readers. */
function settle({ looking, theme }: Context, charts: ChartView[]): void {
  for (const chart of charts) if (chart.isSeen) chart.describe();
  const link = { view: looking.isWhole ? null : looking.view, cursor: looking.pinned, theme: theme.chosen };
  try {
    history.replaceState(null, "", writeLink(link) || location.pathname + location.search);
  } catch {
    // Some browsers refuse this for files; the page then has no link to its view.
  }
}

function applyLink({ looking, theme }: Context): void {
  const link = readLink(location.hash);
  if (link.view !== null) looking.show(link.view.from, link.view.to);
  if (link.cursor !== null) looking.pin(link.cursor);
  if (isChoice(link.theme)) theme.set(link.theme);
}

function neighbour(charts: ChartView[], at: number, by: number): number {
  const times = (charts.find((chart) => chart.isSeen) ?? charts[0])?.curves.picture.times ?? new Float64Array();
  return times[Math.min(Math.max(nearest(times, at) + by, 0), times.length - 1)] ?? at;
}

function watchSize(fit: () => void): void {
  const main = document.querySelector("main");
  let width = 0;
  let timer = 0;
  const observer = new ResizeObserver(([entry]) => {
    const now = entry?.contentRect.width ?? 0;
    if (now === width) return;
    width = now;
    clearTimeout(timer);
    timer = window.setTimeout(fit, 60);
  });
  if (main !== null) observer.observe(main);
}

/** So long the reader's own doings wait at most. */
const FRAME_MS = 12;

/** Draws what is on the screen at once, the rest in pauses, and what is in folded parts when they open. */
function watchSight(charts: ChartView[]): void {
  const byFigure = new Map(charts.map((chart) => [chart.figure as Element, chart]));
  const sight = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) byFigure.get(entry.target)?.see(entry.isIntersecting);
    },
    { rootMargin: "120px" },
  );
  for (const chart of charts) sight.observe(chart.figure);
  const rest = [...charts];
  const next = () => {
    const pause = performance.now() + FRAME_MS;
    while (rest.length > 0 && performance.now() < pause) rest.shift()?.draw();
    if (rest.length > 0) {
      setTimeout(next);
      return;
    }
    performance.mark("memtide-drawn");
    document.documentElement.dataset.drawn = "all";
  };
  setTimeout(next);
}

/** Says what is missing where the charts would be. */
function excuse(error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  const note = element("p", "notice", `No charts: ${reason}. The text and the tables of this page are complete.`);
  note.setAttribute("role", "alert");
  document.getElementById("navigator")?.replaceChildren(note);
  document.documentElement.classList.add("has-no-charts");
}

document.documentElement.classList.add("js");
const theme = new ThemeChoice(readLink(location.hash).theme);
copyButtons();
context(theme).then(start).catch(excuse);
