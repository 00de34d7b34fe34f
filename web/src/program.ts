/** Puts the page's parts together: once for a page that is one file, again and again for one that a server sends. */

import { ChartView } from "./chart";
import type { Context } from "./context";
import { freeOf } from "./curves";
import { decode, inflate } from "./data";
import { all } from "./dom";
import { Findings, placeAmong } from "./findings";
import { helpDialog } from "./help";
import { keyboard } from "./keys";
import { Levels, nearest } from "./levels";
import { Navigator } from "./navigator";
import { printing } from "./print";
import { layout, namesAlike, placeOf, sideOf, type Side } from "./sides";
import type { PageData } from "./source";
import { isChoice, type ThemeChoice } from "./theme";
import { Clock } from "./time";
import { Looking, readLink, writeLink } from "./view";

/** A view shorter than so many samples is not worth drawing. */
const LEAST_SAMPLES = 4;

export type Source = Pick<Context, "side" | "meta" | "levels" | "clock">;

/** Reads a source; null where it has nothing over time: the page's text is then all there is. */
export async function read(side: Side, { meta, packed }: PageData): Promise<Source | null> {
  if (meta.charts.length === 0 || (meta.levels[0]?.rows ?? 0) < 2) return null;
  const levels = new Levels(decode(await inflate(packed), meta), meta.gaps, meta.interval_s ?? 0);
  return { side, meta, levels, clock: new Clock(meta) };
}

/** How the sources lie beside each other, and what is shown first. */
function arranged(sources: readonly Source[], opens: Source) {
  const metas = sources.map(({ meta }) => meta);
  const by = document.querySelector("main")?.dataset.beside === "moments" ? "moments" : "beginnings";
  const { whole, view, ahead, range } = layout(metas, opens.meta, by);
  const least = Math.min(...metas.map((meta) => Math.max(LEAST_SAMPLES * (meta.interval_s ?? 0.5), 0.5)));
  return { opening: { whole, view, worst: opens.meta.worst_s, least }, ahead, range, alike: namesAlike(metas) };
}

export function contexts(sources: readonly Source[], theme: ThemeChoice): Context[] {
  const opens = leading(sources);
  if (opens === undefined) return [];
  const { opening, ahead, range, alike } = arranged(sources, opens);
  const looking = new Looking(opening);
  return sources.map((source) => {
    return { ...source, looking: looking.ahead(ahead(source.meta)), range: range(source.meta), theme, alike };
  });
}

/** The source that the cursor opens at, with the findings that the keys go through. */
function leading<S extends Source>(sources: readonly S[]): S | undefined {
  const word = document.querySelector("main")?.dataset.opens ?? "";
  return sources.find(({ side }) => side === word) ?? sources[0];
}

/** What is drawn of one source or of two. */
export interface Drawn {
  first: Context;
  charts: readonly ChartView[];
  findings: readonly Findings[];
  /** Each shows newer data of its context when it is updated. */
  parts: readonly { update(): void }[];
}

/** Null where there is nothing to draw. */
export function start(contexts: readonly Context[]): Drawn | null {
  const first = leading(contexts);
  if (first === undefined) {
    document.documentElement.classList.add("has-no-charts");
    document.documentElement.dataset.drawn = "all";
    return null;
  }
  const { theme, looking } = first;
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
  const free = [...new Set(charts.flatMap(({ curves }) => freeOf(curves.chart)))];
  keyboard({ looking: longest.looking, stepFinding, theme, help, toggleFree: () => looking.toggle(...free), neighbour: (at, by) => neighbour(stepped, at, by) });
  return { first, charts, findings: [...findings.values()], parts: [...charts, ...navigators, ...findings.values()] };
}

/** Shows newer data of a page about one source. Zoom, cursor and selection stay. */
export function update({ first, parts }: Drawn, source: Source | undefined): void {
  if (source === undefined) throw new Error("the server has nothing over time");
  const { looking, meta } = first;
  const { opening, range, alike } = arranged([source], source);
  looking.reopen(opening, source.clock.since(first.clock), placeAmong(source.meta.findings, meta.findings, looking.finding));
  Object.assign(first, { ...source, range: range(source.meta), alike });
  for (const part of parts) part.update();
  looking.flush();
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
      if (changed.has("hidden")) navigator.rescale();
      if (changed.has("view")) navigator.showView();
      navigator.showCursor();
    }
    for (const chart of charts) {
      if (chart.isSeen && changed.size === 1 && changed.has("cursor")) chart.showCursor();
      else chart.refresh();
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
  const link = { view: looking.isAsOpened ? null : looking.view, cursor: looking.pinned, hidden: [...looking.hidden], theme: theme.chosen };
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
  if (link.hidden !== null) looking.hide(link.hidden);
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
