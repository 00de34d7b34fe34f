/** Mouse and touch on a plot: hovering moves the cursor, a click pins it, dragging zooms, a double click shows everything. */

import type uPlot from "uplot";

import type { Looking } from "./view";

/** A drag shorter than this is a click. */
const DRAG_PX = 5;

export function pointer(plot: uPlot, looking: Looking, snapped: (at: number) => number): void {
  const { over } = plot;
  let isTouch = false;
  let hasDragged = false;
  let pinnedBefore = looking.cursor;

  const at = (clientX: number) => {
    const box = over.getBoundingClientRect();
    return snapped(plot.posToVal(Math.min(Math.max(clientX - box.left, 0), box.width), "x"));
  };

  over.addEventListener("pointerdown", (event) => {
    isTouch = event.pointerType === "touch";
    hasDragged = false;
  });
  // A finger does not hover: it pins, and sliding sideways moves the pin. The page scrolls up and down by itself.
  over.addEventListener("mousemove", (event) => {
    if (!isTouch) looking.hover(at(event.clientX));
  });
  over.addEventListener("mouseleave", () => looking.hover(null));
  over.addEventListener(
    "touchmove",
    (event) => {
      const [touch] = event.touches;
      if (touch !== undefined && event.touches.length === 1) looking.pin(at(touch.clientX));
    },
    { passive: true },
  );
  over.addEventListener("click", (event) => {
    if (hasDragged || event.detail > 1) return;
    pinnedBefore = looking.pinned ?? NaN;
    looking.pin(at(event.clientX));
  });
  over.addEventListener("dblclick", () => {
    if (Number.isNaN(pinnedBefore)) looking.pinWorst();
    else looking.pin(pinnedBefore);
    looking.showWhole();
  });

  (plot.hooks.setSelect ??= []).push((u) => {
    const { left, width } = u.select;
    if (width < DRAG_PX) return;
    hasDragged = true;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    looking.show(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
  });
}
