/**
 * What every part of the page shares; of two sources each has its own, with one `looking` and one `theme`. Where newer data
 * come, all but those two are replaced, and each part is updated.
 */

import type { Levels, View } from "./levels";
import type { Meta } from "./page";
import type { Side } from "./sides";
import type { ThemeChoice } from "./theme";
import type { Clock } from "./time";
import type { Looking } from "./view";

export interface Context {
  side: Side;
  meta: Meta;
  levels: Levels;
  clock: Clock;
  /** By this source's clock. */
  looking: Looking;
  /** What its navigator shows. */
  range: View;
  theme: ThemeChoice;
  /** Names of things alike, by chart, in the order of their tones. */
  alike: ReadonlyMap<string, readonly string[]>;
}
