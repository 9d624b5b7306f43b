import type { Clock } from '../domain/time.ts';
import type { FleetNode } from './fleet-node.ts';

/** The longest time after a start that requests wait for machines to answer. */
const AT_MOST_MS = 3_000;

/** The moment after a start when the machines known from before have answered, or have had their time. */
export class Settling {
  readonly done: Promise<void>;
  readonly #clock: Clock;
  readonly #complete: () => boolean;
  #resolve: () => void = () => {};

  /** @param complete false while a node is still to come that is not in the list yet (the embedded agent). */
  constructor(clock: Clock, complete: () => boolean) {
    this.#clock = clock;
    this.#complete = complete;
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  start(nodes: readonly FleetNode[]): void {
    this.#clock.after(AT_MOST_MS, this.#resolve);
    this.look(nodes);
  }

  look(nodes: readonly FleetNode[]): void {
    if (this.#complete() && nodes.every(({ state }) => state !== 'unknown')) this.#resolve();
  }
}
