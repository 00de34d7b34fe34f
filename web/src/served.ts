/** The program of a page that a server sends: it gets its data from there, again and again where they change. */

import { Changes } from "./changes";
import { Closer } from "./closer";
import { copyButtons } from "./findings";
import { patience, seen } from "./live";
import { Notice, excuse } from "./notice";
import { contexts, read, start, update, type Drawn } from "./program";
import { ask, split } from "./server";
import { FreshText } from "./text";
import { ThemeChoice } from "./theme";
import { readLink } from "./view";

/** Draws the page's data, and again whenever there are newer ones. */
async function run(theme: ThemeChoice): Promise<void> {
  const head = document.getElementById("memtide-page");
  const { url, every: every_s, closer, text, changes: events } = head?.dataset ?? {};
  if (url === undefined) return;
  const every = every_s === undefined ? null : Number(every_s);
  const changes = every === null ? null : new Changes(events, every);
  const released = patience();
  const notice = new Notice();
  const fresh = text === undefined ? null : new FreshText(text);
  let tag: string | null = null;
  let drawn: Drawn | null = null;
  let detail: Closer | null = null;
  for (;;) {
    try {
      const sent = await ask(url, tag);
      if (sent !== null) {
        const source = await read("", split(sent.bytes));
        await released();
        if (drawn === null) {
          notice.clear();
          // A page that was written without charts has no place for any.
          if (source !== null && document.getElementById("navigator") === null) {
            location.reload();
            return;
          }
          drawn = start(contexts(source === null ? [] : [source], theme));
          if (drawn !== null && closer !== undefined) detail = new Closer(closer, drawn);
        } else {
          update(drawn, source ?? undefined);
          await fresh?.take(drawn);
        }
        detail?.isOf(sent.tag);
        tag = sent.tag;
      }
      notice.clear();
    } catch (error) {
      const shownUntil = drawn === null ? null : drawn.first.clock.moment(drawn.first.meta.span_s);
      notice.say(excuse(error, shownUntil, every), drawn !== null);
    }
    if (changes === null) return;
    await changes.next();
    await seen();
  }
}

document.documentElement.classList.add("js");
copyButtons(document);
void run(new ThemeChoice(readLink(location.hash).theme));
