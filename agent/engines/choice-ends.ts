/**
 * Which of an answer's choices have begun and which have ended. A choice without an index is the first one.
 */
export class ChoiceEnds {
  readonly #seen = new Set<number>();
  readonly #ended = new Set<number>();

  see(index: unknown): void {
    this.#seen.add(placeOf(index));
  }

  end(index: unknown): void {
    this.see(index);
    this.#ended.add(placeOf(index));
  }

  /** There is a choice, and each that has begun has ended. */
  get all(): boolean {
    return this.#seen.size > 0 && this.#ended.size === this.#seen.size;
  }
}

const placeOf = (index: unknown) => (typeof index === 'number' ? index : 0);
