/** Zooming into a long recording: the stretch that is looked at is fetched in full detail. */

import { decode, inflate } from "./data";
import { before } from "./levels";
import type { Drawn } from "./program";
import { ask, splitCloser } from "./server";

/** Steps of one movement, as of a wheel, follow each other faster than this. */
const REST_MS = 120;
/** A longer view shows minutes as well as it could samples. */
const LONGEST_S = 4 * 3600;
/** With fewer rows than this part of the samples, or of what a screen tells apart, there is something to see. */
const WORTH = 0.6;
const COLUMNS = 1500;

export class Closer {
  #tag: string | null = null;
  #timer = 0;
  /** When the view last changed. */
  #moved = -Infinity;
  /** The stretch that was asked for last; it is not asked for twice. */
  #asked = "";
  /** Seconds between samples: a recorder takes one a second, until a stretch says otherwise. */
  #interval = 1;

  constructor(
    private readonly address: string,
    private readonly drawn: Drawn,
  ) {
    drawn.first.looking.onChange((changed) => {
      if (!changed.has("view")) return;
      clearTimeout(this.#timer);
      const now = performance.now();
      // A single step is answered at once, a movement where it rests.
      if (now - this.#moved > REST_MS) void this.#look();
      else this.#timer = window.setTimeout(() => void this.#look(), REST_MS);
      this.#moved = now;
    });
  }

  /** The page's data are these now. */
  isOf(tag: string | null): void {
    this.#tag = tag;
    this.#asked = "";
    void this.#look();
  }

  async #look(): Promise<void> {
    const { meta, levels, looking } = this.drawn.first;
    const { from, to } = looking.view;
    const length = to - from;
    if (this.#tag === null || length > LONGEST_S) return;
    const { times } = levels.picture(0, { from, to });
    const rows = before(times, to) - before(times, from);
    if (rows >= WORTH * Math.min(length / this.#interval, COLUMNS)) return;
    // The next steps to either side are there, too.
    const margin = Math.min(length / 2, (LONGEST_S - length) / 2);
    const [begin, end] = [Math.max(from - margin, levels.range.from), Math.min(to + margin, levels.range.to)];
    const question = `?of=${encodeURIComponent(this.#tag)}&from=${begin.toFixed(3)}&to=${end.toFixed(3)}`;
    if (question === this.#asked) return;
    this.#asked = question;
    try {
      const sent = await ask(this.address + question);
      if (sent === null || this.drawn.first.levels !== levels) return;
      const [head, packed] = splitCloser(sent.bytes);
      const charts = meta.charts.map((chart, at) => {
        const scales = head.scales[at] ?? [];
        return { ...chart, series: scales.map((scale, one) => ({ ...chart.series[one]!, scale })) };
      });
      const [level] = decode(await inflate(packed), { levels: [head.level], charts });
      if (level === undefined) return;
      this.#interval = (level.to - level.from) / Math.max(level.times.length - 1, 1);
      levels.add(level);
      for (const chart of this.drawn.charts) chart.refresh();
      document.documentElement.dataset.closer = question;
    } catch {
      // The page has newer data by now, or the server says in its next answer why it has none: what is drawn stays.
    }
  }
}
