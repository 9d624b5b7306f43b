/**
 * One look at a time for many who ask at once. A look that has begun already would tell the newcomer of a moment before it
 * asked, so whoever comes meanwhile shares the next one.
 */
export class SharedLook<T> {
  readonly #look: () => Promise<T>;
  #now: Promise<T> | null = null;
  #next: Promise<T> | null = null;

  constructor(look: () => Promise<T>) {
    this.#look = look;
  }

  read(): Promise<T> {
    if (this.#now === null) return this.#begin();
    this.#next ??= this.#now.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<T> {
    this.#next = null;
    const looking = this.#look().finally(() => {
      if (this.#now === looking) this.#now = null;
    });
    this.#now = looking;
    return looking;
  }
}
