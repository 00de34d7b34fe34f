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
import { idOf, layout, namesAlike, placeOf, sideOf, SIDES, type Side } from "./sides";
import { isChoice, ThemeChoice } from "./theme";
import { Clock } from "./time";
import { Looking, readLink, writeLink } from "./view";

/** A view shorter than so many samples is not worth drawing. */
const LEAST_SAMPLES = 4;

type Source = Pick<Context, "side" | "meta" | "levels" | "clock">;

/** What the page has of a source; null where it has none, or nothing over time: its text is then all there is. */
async function source(side: Side): Promise<Source | null> {
  const block = (kind: string) => document.getElementById(idOf(side, kind))?.textContent;
  const head = block("memtide-page");
  if (head == null) return null;
  const meta = readMeta(head);
  if (meta.charts.length === 0 || (meta.levels[0]?.rows ?? 0) < 2) return null;
  const levels = new Levels(decode(await inflate(block("memtide-data") ?? ""), meta), meta.gaps, meta.interval_s ?? 0);
  return { side, meta, levels, clock: new Clock(meta) };
}

async function contexts(theme: ThemeChoice): Promise<Context[]> {
  const sources = (await Promise.all(SIDES.map(source))).filter((it) => it !== null);
  const opens = leading(sources);
  if (opens === undefined) return [];
  const by = document.querySelector("main")?.dataset.beside === "moments" ? "moments" : "beginnings";
  const { whole, view, ahead, range } = layout(sources.map(({ meta }) => meta), opens.meta, by);
  const least = Math.min(...sources.map(({ meta }) => Math.max(LEAST_SAMPLES * (meta.interval_s ?? 0.5), 0.5)));
  const looking = new Looking({ whole, view, worst: opens.meta.worst_s, least });
  const alike = namesAlike(sources.map(({ meta }) => meta));
  return sources.map((source) => {
    return { ...source, looking: looking.ahead(ahead(source.meta)), range: range(source.meta), theme, alike };
  });
}

/** The source whose moment the cursor opens at, and whose findings the keys go through. */
function leading<S extends Source>(sources: readonly S[]): S | undefined {
  const word = document.querySelector("main")?.dataset.opens ?? "";
  return sources.find(({ side }) => side === word) ?? sources[0];
}

function start(contexts: Context[]): void {
  const first = leading(contexts);
  if (first === undefined) {
    document.documentElement.classList.add("has-no-charts");
    document.documentElement.dataset.drawn = "all";
    return;
  }
  const { theme } = first;
  const help = helpDialog(contexts.length > 1);
  applyLink(first);
  const findings = new Map(contexts.map((context) => [context, new Findings(context)]));
  const navigators = contexts.map((context) => {
    return new Navigator(placeOf(context.side), context, (index) => findings.get(context)?.goTo(index), help);
  });
  const charts = contexts.flatMap(chartViews);
  pair(charts);
  wire(first, charts, navigators);
  const longest = contexts.reduce((one, other) => (other.meta.span_s > one.meta.span_s ? other : one));
  const stepped = charts.filter((chart) => sideOf(chart.figure) === longest.side);
  const stepFinding = (by: number) => findings.get(first)?.step(by);
  keyboard({ looking: longest.looking, stepFinding, theme, help, neighbour: (at, by) => neighbour(stepped, at, by) });
}

function chartViews(context: Context): ChartView[] {
  const figures = all("figure[data-chart]").filter((figure) => sideOf(figure) === context.side);
  return figures.flatMap((figure) => {
    const index = context.meta.charts.findIndex((chart) => chart.id === figure.dataset.chart);
    return index < 0 ? [] : [new ChartView(figure, index, context)];
  });
}

/** Charts of both sides have one scale. */
function pair(charts: readonly ChartView[]): void {
  for (const { curves } of charts) {
    curves.beside = charts.find((other) => other.curves !== curves && other.curves.chart.id === curves.chart.id)?.curves ?? null;
  }
}

/** Changes of state go to what is on the screen; the rest follows when it gets there. */
function wire(context: Context, charts: ChartView[], navigators: readonly Navigator[]): void {
  const { looking, theme } = context;
  looking.onChange((changed) => {
    for (const navigator of navigators) {
      if (changed.has("view")) navigator.showView();
      navigator.showCursor();
    }
    for (const chart of charts) {
      if (changed.has("view") || changed.has("finding") || !chart.isSeen) chart.refresh();
      else chart.showCursor();
    }
    soon(() => settle(context, charts));
  });
  theme.onChange(() => {
    for (const navigator of navigators) navigator.recolour();
    for (const chart of charts) chart.recolour();
    soon(() => settle(context, charts));
  });
  const fit = () => {
    for (const navigator of navigators) navigator.fit();
    for (const chart of charts) chart.fit();
  };
  printing(charts, navigators, theme, fit);
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
  const link = { view: looking.isAsOpened ? null : looking.view, cursor: looking.pinned, theme: theme.chosen };
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
contexts(theme).then(start).catch(excuse);
