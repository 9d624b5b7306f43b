/** What one kind of record may occupy while the database does not take it. */
export interface Bound {
  readonly items: number;
  readonly bytes: number;
}

export interface BufferedBatch<Item> {
  /** 1, 2, 3: the same number always stands for the same items. */
  readonly sequence: number;
  readonly items: readonly Item[];
}

interface Entry<Kind, Item> {
  readonly kind: Kind;
  readonly item: Item;
  readonly bytes: number;
}

/**
 * Records on their way to the disk: first in, first out, each kind inside its own bound so that a flood of one never pushes out
 * another. What the bound turns away is counted, never silent. Plain state; somebody else decides when to write.
 */
export class WriteBuffer<Kind extends string, Item> {
  readonly #bounds: Readonly<Record<Kind, Bound>>;
  readonly #held: Map<Kind, { items: number; bytes: number }>;
  readonly #dropped: Map<Kind, number>;
  #entries: Entry<Kind, Item>[] = [];
  #outstanding: BufferedBatch<Item> | null = null;
  #sequence = 0;

  constructor(bounds: Readonly<Record<Kind, Bound>>) {
    this.#bounds = bounds;
    const kinds = Object.keys(bounds) as Kind[];
    this.#held = new Map(kinds.map((kind) => [kind, { items: 0, bytes: 0 }]));
    this.#dropped = new Map(kinds.map((kind) => [kind, 0]));
  }

  /** @returns false when the bound turned it away. */
  push(kind: Kind, item: Item, bytes: number): boolean {
    const held = this.#held.get(kind);
    const bound = this.#bounds[kind];
    if (!held || held.items + 1 > bound.items || held.bytes + bytes > bound.bytes) {
      this.countDropped(kind, 1);
      return false;
    }
    held.items += 1;
    held.bytes += bytes;
    this.#entries.push({ kind, item, bytes });
    return true;
  }

  /** Counts records that were lost elsewhere on the way. */
  countDropped(kind: Kind, count: number): void {
    this.#dropped.set(kind, (this.#dropped.get(kind) ?? 0) + count);
  }

  /**
   * The oldest items, at most `max`. Until `settle` every call gives the very same batch, because a batch whose answer was lost
   * is sent again and must be recognised. Null: nothing waits.
   */
  batch(max: number): BufferedBatch<Item> | null {
    if (!this.#outstanding && this.#entries.length > 0) {
      this.#sequence += 1;
      this.#outstanding = {
        sequence: this.#sequence,
        items: this.#entries.slice(0, max).map(({ item }) => item),
      };
    }
    return this.#outstanding;
  }

  /** The batch was written: its items leave. */
  settle(): void {
    const count = this.#outstanding?.items.length ?? 0;
    this.#outstanding = null;
    for (const { kind, bytes } of this.#entries.slice(0, count)) {
      const held = this.#held.get(kind);
      if (!held) continue;
      held.items -= 1;
      held.bytes -= bytes;
    }
    this.#entries = this.#entries.slice(count);
  }

  get hasOutstanding(): boolean {
    return this.#outstanding !== null;
  }

  get size(): number {
    return this.#entries.length;
  }

  dropped(kind: Kind): number {
    return this.#dropped.get(kind) ?? 0;
  }
}
