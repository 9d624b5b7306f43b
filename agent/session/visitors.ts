import { createHash } from 'node:crypto';
import type { Acquaintances } from './acquaintances.ts';
import type { Controllers } from './controllers.ts';

export interface ControllerChange {
  readonly event: 'paired' | 'removed';
  readonly controller: string;
}

/** Notices which control planes were paired and removed, however that came about, and notes when each was here. */
export class Visitors {
  readonly #controllers: Controllers;
  readonly #acquaintances: Acquaintances;
  readonly #wallMs: () => number;
  readonly #tell: (change: ControllerChange) => void;
  /** Digests of node keys: whoever is paired anew has another. */
  #known: ReadonlyMap<string, string>;

  constructor(
    controllers: Controllers,
    acquaintances: Acquaintances,
    wallMs: () => number,
    tell: (change: ControllerChange) => void,
  ) {
    this.#controllers = controllers;
    this.#acquaintances = acquaintances;
    this.#wallMs = wallMs;
    this.#tell = tell;
    this.#known = digests(controllers);
  }

  /** Compares with what was there at the last look. */
  look(): void {
    const before = this.#known;
    const now = digests(this.#controllers);
    this.#known = now;
    for (const controller of before.keys()) {
      if (now.has(controller)) continue;
      this.#acquaintances.removed(controller);
      this.#tell({ event: 'removed', controller });
    }
    for (const [controller, key] of now) {
      if (before.get(controller) === key) continue;
      this.#acquaintances.paired(controller, this.#wallMs());
      this.#tell({ event: 'paired', controller });
    }
  }

  seen(controller: string): void {
    if (this.#known.has(controller)) this.#acquaintances.seen(controller, this.#wallMs());
  }

  settled(): Promise<void> {
    return this.#acquaintances.settled();
  }
}

export function sentenceOf({ event, controller }: ControllerChange): string {
  return event === 'paired'
    ? `The control plane ${controller} was paired.`
    : `The control plane ${controller} was removed.`;
}

function digests(controllers: Controllers): ReadonlyMap<string, string> {
  return new Map(
    controllers.ids().map((id) => {
      const key = controllers.key(id) ?? new Uint8Array(0);
      return [id, createHash('sha256').update(key).digest('hex')];
    }),
  );
}
