/** The axes of a plot: what range they have and where their labels stand. */

import type uPlot from "uplot";

import { tick } from "./format";
import { FONT } from "./frame";
import { surface, type Theme } from "./colours";
import type { Chart, Unit } from "./page";
import type { Clock } from "./time";

const isOfBytes = (unit: Unit) => unit === "bytes" || unit === "bytes/s";

/** 1, 2, 5 of each power of ten: no step that rounding would make unequal. */
const DECIMAL_STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** (power - 4))).flat();

/** 1, 2, 4 … 512 of each binary prefix. */
const BYTE_STEPS = Array.from({ length: 55 }, (_, power) => 2 ** power);

export function timeAxis(clock: () => Clock, theme: () => Theme, isEdged: boolean): uPlot.Axis {
  let step = 1;
  return {
    ...common(theme),
    size: 24,
    gap: 6,
    splits: (u, _axis, from, to) => {
      const space = clock().isOfTheWall ? 84 : 64;
      const splits = clock().splits(from, to, u.bbox.width / devicePixelRatio, space);
      step = splits.step;
      return splits.at;
    },
    // A label that would be cut at an edge of the plot is left out.
    values: (u, splits) =>
      splits.map((at) => {
        const text = clock().label(at, step);
        const half = text.length * 3.3;
        const x = u.valToPos(at, "x");
        const width = u.bbox.width / devicePixelRatio;
        return x > width - half + 4 || (isEdged && x < half) ? "" : text;
      }),
  };
}

export function valueAxis(chart: Pick<Chart, "kind" | "unit" | "is_log" | "top">, theme: () => Theme, space: number): uPlot.Axis {
  const axis: uPlot.Axis = {
    ...common(theme),
    size: (u, names) => roomFor(u, names ?? []),
    gap: 5,
    space,
    // What a mirror draws downwards is not negative.
    values: (_u, splits) =>
      splits.map((at) => (at === null ? "" : tick(chart.kind === "mirror" ? Math.abs(at) : at, chart.unit))),
    incrs: isOfBytes(chart.unit) ? BYTE_STEPS : DECIMAL_STEPS,
  };
  if (chart.is_log) {
    axis.splits = (u, _axis, low, high) => powers(low, high, u.bbox.height / devicePixelRatio / 24);
    axis.filter = (_u, splits) => splits;
  } else if (chart.unit === "share" && chart.top === 1) {
    axis.splits = () => [0, 0.25, 0.5, 0.75, 1];
  }
  return axis;
}

/** Charts stand below each other with one edge, unless a name needs more. */
function roomFor({ ctx }: uPlot, names: readonly string[]): number {
  ctx.font = `${11 * devicePixelRatio}px ${FONT}`;
  const widths = names.map((name) => ctx.measureText(name).width / devicePixelRatio);
  return Math.max(66, Math.ceil(Math.max(...widths)) + 9);
}

/** Powers of two between two values, not more than `most` of them. */
function powers(low: number, high: number, most: number): number[] {
  const [first, last] = [Math.ceil(Math.log2(low)), Math.floor(Math.log2(high))];
  const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(most, 1)));
  const at: number[] = [];
  for (let power = Math.ceil(first / every) * every; power <= last; power += every) at.push(2 ** power);
  return at;
}

function common(theme: () => Theme): uPlot.Axis {
  return {
    stroke: () => surface("ink-3", theme()),
    grid: { stroke: () => surface("grid", theme()), width: 1 },
    ticks: { show: false },
    font: `11px ${FONT}`,
  };
}
