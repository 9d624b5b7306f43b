/** An agent that answered at one address. Unproved. */
export interface Sighting {
  readonly id: string;
  readonly fingerprint: string;
  readonly name: string;
  /** `HOST:PORT` as the fleet dials it, IPv6 zone kept. */
  readonly address: string;
  /** Preference of the link it was seen on, smaller is better. */
  readonly rank: number;
}

export interface SeenAgent {
  readonly id: string;
  readonly name: string;
  readonly fingerprint: string;
  readonly address: string;
  /** clock.nowMs of the last sign of it anywhere. */
  readonly seenAtMs: number;
}

interface Spot {
  readonly rank: number;
  readonly order: number;
  seenAtMs: number;
}

interface Entry {
  readonly id: string;
  readonly fingerprint: string;
  name: string;
  readonly spots: Map<string, Spot>;
}

/** Four rounds of queries: whoever misses all of them is gone, or its link is. */
export const KEPT_MS = 60_000;
const MAX_AGENTS = 256;
const MAX_SPOTS = 8;

/**
 * What was seen, one entry per agent however many links and protocols show it. Bounded: anybody on the network can make up
 * agents. An id that appears with two fingerprints is two entries, so that a liar cannot hide the true one.
 */
export class Sightings {
  readonly #entries = new Map<string, Entry>();
  #order = 0;

  add({ id, fingerprint, name, address, rank }: Sighting, nowMs: number): void {
    const key = `${id} ${fingerprint}`;
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      if (this.#entries.size >= MAX_AGENTS) this.expire(nowMs);
      if (this.#entries.size >= MAX_AGENTS) return;
      entry = { id, fingerprint, name, spots: new Map() };
      this.#entries.set(key, entry);
    }
    if (name !== '') entry.name = name;
    const spot = entry.spots.get(address);
    if (spot !== undefined && spot.rank <= rank) {
      spot.seenAtMs = nowMs;
      return;
    }
    if (spot === undefined && entry.spots.size >= MAX_SPOTS) {
      const [oldest] = [...entry.spots].sort(([, a], [, b]) => a.seenAtMs - b.seenAtMs)[0] ?? [];
      if (oldest !== undefined) entry.spots.delete(oldest);
    }
    entry.spots.set(address, { rank, order: spot?.order ?? this.#order++, seenAtMs: nowMs });
  }

  /** The agent said goodbye at that address. */
  remove(id: string, fingerprint: string, address: string): void {
    const key = `${id} ${fingerprint}`;
    const entry = this.#entries.get(key);
    entry?.spots.delete(address);
    if (entry?.spots.size === 0) this.#entries.delete(key);
  }

  expire(nowMs: number): void {
    for (const [key, { spots }] of this.#entries) {
      for (const [address, { seenAtMs }] of spots) if (nowMs - seenAtMs > KEPT_MS) spots.delete(address);
      if (spots.size === 0) this.#entries.delete(key);
    }
  }

  clear(): void {
    this.#entries.clear();
  }

  /** By name. Each with its best address: a real link before a tunnel, IPv4 before IPv6, then whichever was seen first. */
  list(nowMs: number): readonly SeenAgent[] {
    this.expire(nowMs);
    return [...this.#entries.values()]
      .flatMap(({ id, fingerprint, name, spots }) => {
        const sorted = [...spots].sort(([, a], [, b]) => a.rank - b.rank || a.order - b.order);
        const address = sorted[0]?.[0];
        const seenAtMs = Math.max(...sorted.map(([, spot]) => spot.seenAtMs));
        return address === undefined ? [] : [{ id, fingerprint, name, address, seenAtMs }];
      })
      .sort((a, b) => a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1));
  }
}
