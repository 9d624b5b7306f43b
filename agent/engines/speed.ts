/** Learnt from real calls, per model: what the router weighs providers by. EWMA, so that an old burst fades. */
const ALPHA = 0.3;

export class SpeedSignals {
  readonly #models = new Map<string, { tokensPerSecond: number | null; ttftMs: number | null }>();

  /** `tokens` in `elapsedMs` of work; fewer than two tokens or no time say nothing about speed. */
  tokens(model: string, tokens: number, elapsedMs: number): void {
    if (tokens < 2 || !(elapsedMs > 0)) return;
    const entry = this.#entry(model);
    entry.tokensPerSecond = blend(entry.tokensPerSecond, (tokens / elapsedMs) * 1000);
  }

  firstByte(model: string, ttftMs: number): void {
    const entry = this.#entry(model);
    entry.ttftMs = blend(entry.ttftMs, ttftMs);
  }

  of(model: string): { readonly tokensPerSecond: number | null; readonly ttftMs: number | null } {
    return this.#models.get(model) ?? { tokensPerSecond: null, ttftMs: null };
  }

  /** The engine behind the address is another one now. */
  forget(): void {
    this.#models.clear();
  }

  #entry(model: string) {
    const known = this.#models.get(model) ?? { tokensPerSecond: null, ttftMs: null };
    this.#models.set(model, known);
    return known;
  }
}

function blend(known: number | null, sample: number): number {
  return known === null ? sample : known + ALPHA * (sample - known);
}
