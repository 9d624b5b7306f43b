/**
 * Smooth weighted round robin exactly as nginx does it: every peer's current grows by its weight, the strictly greatest (the
 * first on a tie) is picked and pays the sum of the weights. A weight of 0 is never picked. Peers that are not in the arrays
 * keep their current untouched, and a current survives a change of weights.
 *
 * @param weights one per peer, in the order in which ties are broken
 * @param current before the pick; not changed
 * @returns index of the pick, -1 for none
 */
export function pickSmooth(weights: readonly number[], current: readonly number[]): number {
  let picked = -1;
  let best = 0;
  for (let i = 0; i < weights.length; i += 1) {
    const weight = weights[i] ?? 0;
    if (weight <= 0) continue;
    const grown = (current[i] ?? 0) + weight;
    if (picked === -1 || grown > best) {
      picked = i;
      best = grown;
    }
  }
  return picked;
}

/** Settles a pick: calls `add` with what each peer's current changes by. */
export function settleSmooth(
  weights: readonly number[],
  picked: number,
  add: (peer: number, change: number) => void,
): void {
  let total = 0;
  for (let peer = 0; peer < weights.length; peer += 1) {
    const weight = weights[peer] ?? 0;
    total += weight;
    add(peer, weight);
  }
  if (picked >= 0) add(picked, -total);
}
