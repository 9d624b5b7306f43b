import type { NodeId } from '../domain/ids.ts';

/** As long as a machine that just went is given before it is told of: a restart, of the agent or of this program, is shorter. */
export const WORD_WITHIN_MS = 15_000;

/**
 * Agents that have not said yet whether they hold the key. After a start, and while a session is made anew, nobody knows, and an
 * alarm would be about nothing.
 */
export class WordAwaited {
  readonly #since = new Map<NodeId, number>();

  /** From now on, unless it is awaited already. */
  begin(node: NodeId, nowMs: number): void {
    if (!this.#since.has(node)) this.#since.set(node, nowMs);
  }

  heard(node: NodeId): void {
    this.#since.delete(node);
  }

  /** Milliseconds until the last of these has spoken or had its time; 0: no reason to wait. */
  leftMs(nodes: readonly NodeId[], nowMs: number): number {
    const left = nodes.map((node) => (this.#since.get(node) ?? Number.NEGATIVE_INFINITY) + WORD_WITHIN_MS - nowMs);
    return Math.max(0, ...left);
  }
}
