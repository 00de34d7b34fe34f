/** For a page that gets new data again and again: a sentence where they fail to come, and pauses. */

import { element } from "./dom";
import { seconds } from "./format";

/** Says why data are missing, what is shown nevertheless, and whether they are asked for again. */
export function excuse(reason: string, shownUntil: string | null, every: number | null): string {
  const again = every === null ? "" : ` The page asks again every ${seconds(every)}.`;
  if (shownUntil === null) return `No charts: ${reason}. The text and the tables of this page are complete.${again}`;
  return `No new data: ${reason}. The charts show what there was until ${shownUntil}.${again}`;
}

/** A notice where the charts would be, or, beside charts, at the lower edge of the window. */
export class Notice {
  readonly #note = element("p", "notice");

  constructor() {
    this.#note.setAttribute("role", "alert");
  }

  say(text: string, hasCharts: boolean): void {
    document.documentElement.classList.toggle("has-no-charts", !hasCharts);
    const place = document.querySelector(hasCharts ? "main" : "#navigator");
    if (this.#note.parentElement !== place) place?.append(this.#note);
    // What is said again would be read aloud again.
    if (this.#note.textContent !== text) this.#note.textContent = text;
  }

  clear(): void {
    document.documentElement.classList.remove("has-no-charts");
    this.#note.remove();
  }
}

export function pause(length_s: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, length_s * 1000));
}

/** Gives a function that waits as long as a pointer is held down: what is clicked or dragged stays where it is. */
export function patience(): () => Promise<void> {
  let isHeld = false;
  for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"] as const) {
    addEventListener(kind, (event) => (isHeld = event.buttons !== 0), { capture: true, passive: true });
  }
  return async () => {
    while (isHeld) await pause(0.1);
  };
}
