/** Where a plot's values lie on its canvas, in the canvas's own pixels. */

import type uPlot from "uplot";

import type { Theme } from "./colours";

export interface Frame {
  ctx: CanvasRenderingContext2D;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** Canvas pixels in a CSS pixel. */
  ratio: number;
  /** The stretch of time between left and right. */
  from: number;
  to: number;
  theme: Theme;
  x(at: number): number;
  y(value: number): number;
}

export const FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","DejaVu Sans",sans-serif';

export function frameOf(u: uPlot, theme: Theme): Frame {
  const { left, top, width, height } = u.bbox;
  const from = u.scales.x?.min ?? 0;
  const to = u.scales.x?.max ?? 1;
  const perSecond = width / Math.max(to - from, 1e-6);
  return {
    ctx: u.ctx,
    left,
    top,
    right: left + width,
    bottom: top + height,
    ratio: devicePixelRatio,
    from,
    to,
    theme,
    // By hand rather than by valToPos: this runs for each row of each series.
    x: (at) => left + (at - from) * perSecond,
    y: vertical(u, top, height),
  };
}

function vertical(u: uPlot, top: number, height: number): (value: number) => number {
  const scale = u.scales.y;
  const low = scale?.min ?? 0;
  const high = scale?.max ?? 1;
  if (scale?.distr !== 3) return (value) => top + (height * (high - value)) / (high - low);
  const [lowLog, highLog] = [Math.log(low), Math.log(high)];
  return (value) => top + (height * (highLog - Math.log(Math.max(value, low)))) / (highLog - lowLog);
}
