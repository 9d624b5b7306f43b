import type { AgentLink } from './link.ts';

/** Fingerprints that a node may show, to be kept. */
export interface NodeKeys {
  readonly fingerprint: string;
  /** Announced in a session; holds beside the other until it is first used. */
  readonly nextFingerprint: string | null;
}

export interface AnnouncedKeyPorts {
  /** As they hold now; null while there is nothing to dial. */
  keys(): NodeKeys | null;
  hold(keys: NodeKeys): void;
  /** Resolves when a restart will know them. */
  keep(keys: NodeKeys): Promise<void>;
  isCurrent(link: AgentLink): boolean;
}

/** What follows from the fingerprint that a node's heartbeats announce. */
export class AnnouncedKey {
  readonly #ports: AnnouncedKeyPorts;
  /** Session on which the announced key was acknowledged. */
  #toldOn: AgentLink | null = null;
  /** Announced in place of a next key that was never used, and the session in which that was first heard. */
  #other: { readonly announced: string; readonly on: AgentLink } | null = null;
  #keeping: string | null = null;

  constructor(ports: AnnouncedKeyPorts) {
    this.#ports = ports;
  }

  /** @param announced of the key that the agent shows to new connections, or will; undefined: it does not say */
  hear(announced: string | undefined, link: AgentLink): void {
    const held = this.#ports.keys();
    if (announced === undefined || held === null || this.#keeping === announced) return;
    const next = announced === held.fingerprint ? null : announced;
    if (next === held.nextFingerprint) {
      // Known from before; the agent may have been restarted since it was told.
      if (next !== null && this.#toldOn !== link) this.#acknowledge(next, link);
      return;
    }
    if (next !== null && held.nextFingerprint !== null && !this.#isProvedUnused(next, link)) return;
    void this.#keep({ fingerprint: held.fingerprint, nextFingerprint: next }, announced, link);
  }

  /**
   * The agent announces a further key while the next one is unused. That one was acknowledged, in this session or one before, and
   * the agent may have taken it since it proved itself with the present one: giving it up would lock this control plane out for as
   * long as the further key waits for others. A session that begins later, still with the present key, proves that it was dropped.
   */
  #isProvedUnused(announced: string, link: AgentLink): boolean {
    if (this.#other?.announced !== announced) this.#other = { announced, on: link };
    return this.#other.on !== link;
  }

  /** The agent has proved itself with the next key: from then on it is the key. If the store fails now, it still knows both. */
  used(fingerprint: string): void {
    const keys = { fingerprint, nextFingerprint: null };
    this.#ports.hold(keys);
    this.#ports.keep(keys).catch(() => undefined);
  }

  /** Kept first, then held: what a restart would forget must not be acknowledged. */
  async #keep(keys: NodeKeys, announced: string, link: AgentLink): Promise<void> {
    this.#keeping = announced;
    try {
      await this.#ports.keep(keys);
      if (this.#ports.keys()?.fingerprint !== keys.fingerprint) return;
      this.#ports.hold(keys);
      if (keys.nextFingerprint !== null) this.#acknowledge(keys.nextFingerprint, link);
    } catch {
      // The next heartbeat says it again.
    } finally {
      this.#keeping = null;
    }
  }

  #acknowledge(fingerprint: string, link: AgentLink): void {
    if (!this.#ports.isCurrent(link)) return;
    this.#toldOn = link;
    link.acknowledge(fingerprint);
  }
}
