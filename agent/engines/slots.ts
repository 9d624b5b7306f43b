/** Whose call it is, and whether it may stand behind another one at an engine of one slot. */
export interface SlotUse {
  /** Id of the control plane. */
  readonly controller: string;
  /** An encoder that works through one call after the other would idle while each answer travels: the next may wait at it. */
  readonly follows: boolean;
}

const NOBODY: SlotUse = { controller: '', follows: false };

/** Slots of one engine over all control planes: what is beyond them is refused, never queued, because the router queues. */
export class Slots {
  #capacity = 1;
  #running = 0;
  #occupied = 0;
  readonly #perController = new Map<string, number>();

  resize(capacity: number): void {
    this.#capacity = Math.max(1, capacity);
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** Calls running through this agent. */
  get running(): number {
    return this.#running;
  }

  runningOf(controller: string): number {
    return this.#perController.get(controller) ?? 0;
  }

  /**
   * Slots of the engine that these calls may fill: a call with many inputs spreads over several. What the engine reports
   * beyond this is other people's work.
   */
  get occupied(): number {
    return this.#occupied;
  }

  /** @returns the release (idempotent), or null when every slot is taken */
  take(spread: number, { controller, follows }: SlotUse = NOBODY): (() => void) | null {
    const room = this.#capacity + (follows && this.#capacity === 1 ? 1 : 0);
    if (this.#running >= room) return null;
    const filled = Math.max(1, spread);
    this.#running++;
    this.#occupied += filled;
    this.#perController.set(controller, this.runningOf(controller) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#running--;
      this.#occupied -= filled;
      const left = this.runningOf(controller) - 1;
      if (left > 0) this.#perController.set(controller, left);
      else this.#perController.delete(controller);
    };
  }
}
