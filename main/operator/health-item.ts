import type { HealthView } from '../../preload/contract.ts';
import type { Said } from '../domain/said.ts';

/** What a room says is wrong; when it began is looked up. */
export type Item = Omit<HealthView, 'sinceMs' | 'target'> & {
  readonly sinceMs?: number;
  readonly target?: string | null;
};

/** A machine that just went is given a moment: a restart of an agent, or of this app, is no reason to look up. */
export const SHOWS_AFTER_MS = 15_000;

/** A title by its code, and beside it what it says in another language. */
export function titled({ sentence, ...titleSays }: Said): Pick<Item, 'title' | 'titleSays'> {
  return { title: sentence, titleSays };
}
