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

/** Settles a pick: writes the new currents into `current`, in place. */
export function settleSmooth(weights: readonly number[], current: number[], picked: number): void {
  let total = 0;
  for (let i = 0; i < weights.length; i += 1) {
    const weight = weights[i] ?? 0;
    total += weight;
    current[i] = (current[i] ?? 0) + weight;
  }
  if (picked >= 0) current[picked] = (current[picked] ?? 0) - total;
}
