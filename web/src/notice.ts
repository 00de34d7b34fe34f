/** A sentence where data fail to come. */

import { element } from "./dom";
import { seconds } from "./format";

/** Says why data are missing, what is shown nevertheless, and whether they are asked for again. */
export function excuse(error: unknown, shownUntil: string | null, every: number | null): string {
  const reason = error instanceof Error ? error.message : String(error);
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
    const place = document.querySelector(hasCharts ? "main" : "#navigator") ?? document.querySelector("main");
    if (this.#note.parentElement !== place) place?.append(this.#note);
    // What is said again would be read aloud again.
    if (this.#note.textContent !== text) this.#note.textContent = text;
  }

  clear(): void {
    document.documentElement.classList.remove("has-no-charts");
    this.#note.remove();
  }
}
