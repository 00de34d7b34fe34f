/** What the charts and the navigator have uPlot do: axes, scales, and the box that is dragged. Curves are painted by us. */

import uPlot from "uplot";

import type { Curves } from "./curves";

export interface Frame {
  width: number;
  height: number;
  padding: uPlot.Padding;
  /** The time from its left to its right edge, in seconds. */
  time: () => [from: number, to: number];
  axes: uPlot.Axis[];
  paint: (plot: uPlot) => void;
}

/** The curves may be replaced by others of the same chart. */
export function plot(host: HTMLElement, curves: () => Curves, { width, height, padding, time, axes, paint }: Frame): uPlot {
  const range = (): [number, number] => curves().ends;
  const options: uPlot.Options = {
    width,
    height,
    padding,
    legend: { show: false },
    cursor: {
      x: false,
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 5 },
      // uPlot would show the whole range of the data by itself.
      bind: { dblclick: () => null },
    },
    scales: {
      x: { time: false, range: time },
      y: curves().chart.is_log ? { distr: 3, log: 10, range } : { range },
    },
    series: [{}, { stroke: "transparent", points: { show: false } }],
    axes,
    hooks: { draw: [paint] },
  };
  return new uPlot(options, [[0, 1], [null, null]], host);
}

/** Puts the cursor's line where the time lies in what is shown. */
export function placeCursor(
  plot: uPlot,
  line: HTMLElement,
  at: number,
  view: { from: number; to: number },
  isHovering: boolean,
): void {
  const isInside = at >= view.from - 1e-6 && at <= view.to + 1e-6;
  line.hidden = !isInside;
  line.classList.toggle("is-pinned", !isHovering);
  const width = plot.bbox.width / devicePixelRatio;
  const x = ((at - view.from) / Math.max(view.to - view.from, 1e-6)) * width;
  line.style.transform = `translateX(${x.toFixed(1)}px)`;
}
