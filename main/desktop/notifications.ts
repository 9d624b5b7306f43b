import type { HealthView } from '../../preload/contract.ts';
import { inWords, type Language } from './words.ts';

export interface NotifierPorts {
  /** Shows one; `onClick` opens what it is about. */
  readonly show: (title: string, body: string, onClick: () => void) => void;
  readonly open: (item: HealthView) => void;
  readonly language: () => Language;
  readonly wallMs: () => number;
}

/**
 * Tells once of each thing that needs a person, when it begins. What was there at the start is in the window already, and what
 * shows a moment later, when its machine has answered, and began before is no news either.
 */
export class Notifier {
  readonly #ports: NotifierPorts;
  #known: ReadonlySet<string> | null = null;
  #enabled = true;
  #startedAtMs = Number.POSITIVE_INFINITY;

  constructor(ports: NotifierPorts) {
    this.#ports = ports;
  }

  setEnabled(enabled: boolean): void {
    this.#enabled = enabled;
  }

  update(health: readonly HealthView[]): void {
    const needing = health.filter((item) => item.needsPerson);
    const before = this.#known;
    this.#known = new Set(needing.map((item) => item.id));
    if (before === null) this.#startedAtMs = this.#ports.wallMs();
    if (before === null || !this.#enabled) return;
    for (const item of needing) {
      if (before.has(item.id) || item.sinceMs < this.#startedAtMs) continue;
      const { title, sentence } = inWords(item, this.#ports.language());
      this.#ports.show(title, sentence, () => this.#ports.open(item));
    }
  }
}
