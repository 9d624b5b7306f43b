import type { DemoFleet } from './fleet.ts';

interface Event {
  /** Seconds after the start of a round. */
  readonly atS: number;
  readonly sentence: string;
  readonly happen: (fleet: DemoFleet) => Promise<unknown> | unknown;
}

const SOON: readonly Event[] = [
  {
    atS: 8,
    sentence: '429 storm: the account refuses and names nobody',
    happen: ({ standIn }) => standIn.order({ fail: { error: 'account', times: 4 } }),
  },
  {
    atS: 20,
    sentence: 'Poolside has too much to do: 429s that name it',
    happen: ({ standIn }) =>
      standIn.order({ fail: { error: 'upstream-pool', times: 3, model: 'poolside/laguna-s-2.1' } }),
  },
  {
    atS: 28,
    sentence: 'Groq goes off the net for 8 s',
    happen: ({ standIn }) => standIn.order({ down: { groq: true } }),
  },
  { atS: 36, sentence: 'Groq is back', happen: ({ standIn }) => standIn.order({ down: { groq: false } }) },
  {
    atS: 40,
    sentence: 'The engines of attic-server freeze for 10 s',
    happen: (fleet) => fleet.machine('attic-server').engines.freeze(),
  },
  {
    atS: 50,
    sentence: 'The engines of attic-server go on',
    happen: (fleet) => fleet.machine('attic-server').engines.thaw(),
  },
];
/** In a long run, what takes longer to heal. */
const LATER: readonly Event[] = [
  {
    atS: 75,
    sentence: 'OpenRouter answers 503 to all',
    happen: ({ standIn }) => standIn.order({ fail: { error: 'unavailable', times: 8 } }),
  },
  { atS: 90, sentence: 'studio loses its power for 20 s', happen: (fleet) => fleet.kill('studio') },
  { atS: 110, sentence: 'studio starts again', happen: (fleet) => fleet.revive('studio') },
  {
    atS: 135,
    sentence: '429 with a Retry-After of 10 s',
    happen: ({ standIn }) => standIn.order({ fail: { error: 'admission-control', times: 1 } }),
  },
];
const ROUND_MS = 170_000;

/** What goes wrong, round after round. */
export class Weather {
  readonly #fleet: DemoFleet;
  readonly #say: (sentence: string) => void;
  readonly #timers = new Set<NodeJS.Timeout>();
  #happening: Promise<unknown> = Promise.resolve();

  constructor(fleet: DemoFleet, say: (sentence: string) => void) {
    this.#fleet = fleet;
    this.#say = say;
  }

  start(): void {
    for (const event of [...SOON, ...LATER]) {
      this.#after(event.atS * 1000, () => {
        this.#say(event.sentence);
        // One after the other; what cannot happen (a machine that is already gone) is no reason to end.
        this.#happening = this.#happening.then(() => event.happen(this.#fleet)).catch(() => undefined);
      });
    }
    this.#after(ROUND_MS, () => this.start());
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    await this.#happening;
  }

  #after(delayMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, delayMs);
    this.#timers.add(timer);
  }
}
