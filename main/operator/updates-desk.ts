import type { UpdateView } from '../../preload/contract.ts';

/** What looks for newer versions, as the operations see it; the desktop app has one. */
export interface UpdatesDesk {
  readonly state: UpdateView;
  /** Looks now; `state` says how it ended. */
  check(): Promise<void>;
  /** Replaces the app and starts it again. @returns false when nothing is ready. */
  restart(): Promise<boolean>;
  /** Whether it looks by itself: the operator's setting. */
  setAutomatic(automatic: boolean): void;
}
