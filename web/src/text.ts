/** The text of a page that a server sends, as it is now: verdict, findings, tables. Charts stay; they have their own data. */

import { all } from "./dom";
import { copyButtons } from "./findings";
import type { Drawn } from "./program";
import { ask } from "./server";

/** Blocks that are drawn by the program, and what is no text. */
const KEPT = "#navigator, #charts, .notice";
/** What stands around the main part. */
const AROUND = [".host-line .range", "p.strip", "footer"] as const;

export class FreshText {
  #tag: string | null = null;

  constructor(private readonly address: string) {}

  /** Fetches it, and puts what has changed in the place of what was there, where the reader is not at work in it. */
  async take(drawn: Drawn): Promise<void> {
    const sent = await ask(this.address, this.#tag);
    if (sent === null) return;
    this.#tag = sent.tag;
    const fresh = new DOMParser().parseFromString(new TextDecoder().decode(sent.bytes), "text/html");
    const [now, then] = [document.querySelector("main"), fresh.querySelector("main")];
    if (now === null || then === null || isSelecting(now)) return;
    document.title = fresh.title;
    for (const place of AROUND) document.querySelector(place)?.replaceWith(...all(place, fresh));
    const focus = focusIn(now);
    exchange(now, then);
    focus();
    copyButtons(now);
    for (const findings of drawn.findings) findings.textIsNew();
  }
}

/** Whether the reader has selected text, as to copy it. */
function isSelecting(main: HTMLElement): boolean {
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && main.contains(selection.anchorNode);
}

/** Gives a function that puts the keyboard's focus back, on what says the same at the nearest place. */
function focusIn(main: HTMLElement): () => void {
  const places = () => all("a, button, summary, [tabindex]", main);
  const at = places().indexOf(document.activeElement as HTMLElement);
  const text = document.activeElement?.textContent ?? "";
  return () => {
    if (at < 0 || document.activeElement !== document.body) return;
    const alike = [...places().entries()].filter(([, place]) => place.textContent === text);
    const [nearest] = alike.sort(([one], [other]) => Math.abs(one - at) - Math.abs(other - at));
    nearest?.[1].focus({ preventScroll: true });
  };
}

/** Exchanges the blocks of the page; those kept stay where they are among them. */
function exchange(now: HTMLElement, then: HTMLElement): void {
  const open = new Set(all("details[open]", now).map(nameOf));
  const kept = new Map(all(":scope > *", now).filter((block) => block.matches(KEPT)).map((block) => [block.id, block]));
  for (const block of [...now.children]) if (!block.matches(KEPT)) block.remove();
  let after: Element | null = null;
  for (const block of [...then.children]) {
    const stays: Element | undefined = block.matches(KEPT) ? kept.get(block.id) : undefined;
    if (stays !== undefined) {
      after = stays;
      continue;
    }
    if (block.matches(KEPT)) continue;
    const made = document.importNode(block, true);
    if (after === null) now.prepend(made);
    else after.after(made);
    after = made;
  }
  for (const details of all<HTMLDetailsElement>("details", now)) if (open.has(nameOf(details))) details.open = true;
}

/** What folds is known by its place, the finding or the block that it is in, and by its first line without figures. */
function nameOf(details: HTMLElement): string {
  const within = details.closest("[data-finding], section[id]");
  const line = details.querySelector("summary")?.textContent ?? "";
  return `${within?.id ?? ""}: ${line.replace(/[\d.,]+/g, "")}`;
}
