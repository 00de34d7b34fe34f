/** What every part of the page shares; of two sources each has its own, with one `looking` and one `theme`. */

import type { Levels } from "./levels";
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
  looking: Looking;
  theme: ThemeChoice;
}
