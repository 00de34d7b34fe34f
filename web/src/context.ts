/** What every part of the page shares. */

import type { Levels } from "./levels";
import type { Meta } from "./page";
import type { ThemeChoice } from "./theme";
import type { Clock } from "./time";
import type { Looking } from "./view";

export interface Context {
  meta: Meta;
  levels: Levels;
  clock: Clock;
  looking: Looking;
  theme: ThemeChoice;
}
