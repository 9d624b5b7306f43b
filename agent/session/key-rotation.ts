import type { Identity } from './identity.ts';

export interface KeyRotationOptions {
  readonly identity: Identity;
  /** Ids of the paired control planes, now. */
  readonly controllers: () => readonly string[];
  /** The identity as another process may have left it. */
  readonly read: () => Promise<Identity>;
  /** Makes the key on its way the agent's, durably: from then on it survives a crash. */
  readonly take: () => Promise<Identity>;
  /** Another key is announced than before. */
  readonly onAnnounced: () => void;
  /** Another key is the agent's: the next connection is to be shown it. */
  readonly onTaken: (identity: Identity) => void;
  readonly onFault: (error: unknown) => void;
}

/**
 * The change from one key to the next. The next one is announced in every session; each control plane says when it has kept it,
 * and then takes either. When the last one has said so, the agent shows it. Who was away meanwhile is waited for: shown a key
 * that it never heard of, it would take the agent for another.
 */
export class KeyRotation {
  readonly #options: KeyRotationOptions;
  #identity: Identity;
  /** Control planes that have kept the key on its way. After a restart of the agent they say so again. */
  readonly #known = new Set<string>();
  #taking = false;

  constructor(options: KeyRotationOptions) {
    this.#options = options;
    this.#identity = options.identity;
  }

  /** Fingerprint of the key that new connections are shown, or will be. */
  get announced(): string {
    return (this.#identity.next ?? this.#identity).fingerprint;
  }

  acknowledged(controller: string, fingerprint: string): void {
    if (this.#identity.next?.fingerprint !== fingerprint) return;
    this.#known.add(controller);
    this.look();
  }

  /** A control plane was removed, or has said that it knows: is anybody missing still? */
  look(): void {
    if (this.#identity.next === null || this.#taking) return;
    if (!this.#options.controllers().every((id) => this.#known.has(id))) return;
    this.#taking = true;
    this.#options
      .take()
      .then((identity) => this.#become(identity), this.#options.onFault)
      .finally(() => {
        this.#taking = false;
      });
  }

  /** A command in another process has made a key, or changed it at once. */
  async reload(): Promise<void> {
    this.#become(await this.#options.read());
    this.look();
  }

  #become(identity: Identity): void {
    const before = { announced: this.announced, shown: this.#identity.fingerprint };
    this.#identity = identity;
    if (this.announced !== before.announced) this.#known.clear();
    if (identity.fingerprint !== before.shown) this.#options.onTaken(identity);
    if (this.announced !== before.announced) this.#options.onAnnounced();
  }
}
