/** Addresses from discovery that wait to be dialled. */
const MAX_HINTS = 4;

/**
 * Where a node may be dialled beside the address that is known of it. What discovery has seen is only a hint, for anybody can announce a
 * node: each is tried once, and nothing changes unless the session proves that it is the node.
 */
export class NodeAddresses {
  /** Newest first. */
  #hints: readonly string[] = [];
  /** Where it was seen while its session ran: worth a try when that is lost. */
  #elsewhere: string | null = null;
  /** Where it was before it moved. */
  #former: string | null = null;
  #dials = 0;

  get hasHints(): boolean {
    return this.#hints.length > 0;
  }

  reset(): void {
    this.#hints = [];
    this.#elsewhere = null;
    this.#former = null;
  }

  /** @returns false when it waits to be dialled already */
  hint(address: string): boolean {
    if (this.#hints.includes(address)) return false;
    this.#hints = [address, ...this.#hints].slice(0, MAX_HINTS);
    return true;
  }

  seenWhileRunning(address: string): void {
    this.#elsewhere = address;
  }

  sessionLost(): void {
    if (this.#elsewhere !== null) this.#hints = [this.#elsewhere];
    this.#elsewhere = null;
  }

  moved(from: string | null): void {
    this.#former = from;
  }

  /** To be dialled now: a hint, else the known one and where it was before by turns. */
  next(known: string): string {
    const [hint, ...rest] = this.#hints;
    this.#hints = rest;
    this.#dials += 1;
    return hint ?? (this.#former !== null && this.#dials % 2 === 0 ? this.#former : known);
  }
}
