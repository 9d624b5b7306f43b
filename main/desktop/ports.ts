import type { KeyPush, TopicUpdate } from '../../preload/contract.ts';

/** What the desktop needs of the control plane. `ControlPlane` is one; tests play another. */
export interface DesktopPlane {
  /** One operation of the contract. @throws SwitchyardError, also at once. */
  call(name: string, input: unknown): Promise<unknown>;
  /** Takes ownership of the bytes and zeroes them. */
  pushCloudKey(key: Buffer, push: KeyPush): Promise<void>;
  readonly topics: {
    /** A snapshot of each topic before it returns, then changes. @returns its own unsubscribe. */
    subscribe(topics: readonly string[], listener: (update: TopicUpdate) => void): () => void;
  };
  onPower(change: 'suspend' | 'resume'): void;
}

/** Runs once after a delay; the returned function cancels it. */
export type After = (delayMs: number, callback: () => void) => () => void;
