/** Slots of one engine over all control planes: what is beyond them is refused, never queued, because the router queues. */
export class Slots {
  #capacity = 1;
  #running = 0;
  #occupied = 0;

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

  /**
   * Slots of the engine that these calls may fill: a call with many inputs spreads over several. What the engine reports
   * beyond this is other people's work.
   */
  get occupied(): number {
    return this.#occupied;
  }

  /** @returns the release (idempotent), or null when every slot is taken */
  take(spread: number): (() => void) | null {
    if (this.#running >= this.#capacity) return null;
    const filled = Math.max(1, spread);
    this.#running++;
    this.#occupied += filled;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#running--;
      this.#occupied -= filled;
    };
  }
}
