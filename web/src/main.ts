/** The program of a page that is one file. Without it the page is complete text; with it, it has charts. */

import { copyButtons } from "./findings";
import { excuse, Notice } from "./notice";
import { contexts, read, start } from "./program";
import { embedded } from "./source";
import { ThemeChoice } from "./theme";
import { readLink } from "./view";

async function run(theme: ThemeChoice): Promise<void> {
  try {
    const sources = await Promise.all(embedded().map(({ side, data }) => read(side, data())));
    start(contexts(sources.filter((it) => it !== null), theme));
  } catch (error) {
    new Notice().say(excuse(error, null, null), false);
  }
}

document.documentElement.classList.add("js");
copyButtons(document);
void run(new ThemeChoice(readLink(location.hash).theme));
