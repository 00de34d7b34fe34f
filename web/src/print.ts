/** Paper: light, all but tables and kernel logs open, two charts in a row, the pinned cursor visible. */

import type { ChartView } from "./chart";
import { all } from "./dom";
import type { Navigator } from "./navigator";
import type { ThemeChoice } from "./theme";

/** Widths on A4 with the style sheet's margins, in CSS pixels, and heights that let a page hold several. */
const PAGE = 700;
const SIZES = { overview: [440, 300], wide: [440, 230], alone: [676, 200], small: [318, 130] } as const;
/** Where the same chart of another source stands beside. */
const PAIRED = { overview: [318, 220], wide: [318, 180], small: [318, 130] } as const;

export function printing(charts: readonly ChartView[], navigators: readonly Navigator[], theme: ThemeChoice, fit: () => void): void {
  let closed: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    closed = all<HTMLDetailsElement>("details:not([open])").filter((details) => !details.matches(".table, .events details"));
    for (const details of closed) details.open = true;
    theme.print(true);
    for (const navigator of navigators) navigator.fit(navigators.length > 1 ? PAIRED.small[0] : PAGE);
    for (const chart of charts) {
      chart.draw();
      chart.fit(...size(chart));
    }
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
    theme.print(false);
    fit();
  });
}

function size({ figure, curves: { chart } }: ChartView): readonly [width: number, height: number] {
  if (figure.closest(".pair") !== null) return PAIRED[chart.size];
  return chart.size !== "small" && chart.kind !== "stack" ? SIZES.alone : SIZES[chart.size];
}
