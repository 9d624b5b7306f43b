import type { CloudAsk } from '../../agent/wire/cloud.ts';
import type { Heartbeat, Welcome } from '../../agent/wire/control.ts';
import { SwitchyardError } from '../../main/domain/errors.ts';
import type { AgentLink, CloudLane, LinkOptions } from '../../main/fleet/link.ts';

export const welcome: Welcome = {
  t: 'welcome',
  wireVersion: 1,
  agentVersion: '0.1.0',
  node: 'n1',
  name: 'workstation',
  platform: 'linux',
  arch: 'x64',
  cpu: null,
  cores: 8,
  memoryTotalBytes: 1,
  pid: 1,
  startedAtMs: 0,
};

export const heartbeat = (parts: Partial<Heartbeat> = {}): Heartbeat => ({
  t: 'heartbeat',
  seq: 1,
  atMs: 0,
  host: { cpuPercent: null, memoryUsedBytes: null, memoryTotalBytes: null, uptimeS: null },
  gpus: [],
  engines: [],
  controllers: 1,
  ...parts,
});

/** A link that the test plays: dialling ends when it says so. */
export class FakeLink implements AgentLink, CloudLane {
  readonly options: LinkOptions;
  readonly opener = { open: () => ({ cancel() {}, resume() {} }) };
  readonly openCalls = 0;
  rttMs: number | null = null;
  pulls = false;
  heardAtMs: number | null = null;
  closed = false;
  forgotten = false;
  #settle: { resolve: (value: Welcome) => void; reject: (error: unknown) => void } | null = null;

  constructor(options: LinkOptions) {
    this.options = options;
  }

  start(): Promise<Welcome> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
  }

  /** The session is up; the first heartbeat comes before `start` resolves, as a real agent sends it. */
  up(beat: Heartbeat = heartbeat()): void {
    this.pulls = true;
    this.options.handlers.onWelcome(welcome);
    this.options.handlers.onHeartbeat(beat);
    this.#settle?.resolve(welcome);
  }

  refuse(code: 'node_unreachable' | 'identity_changed' | 'join_refused'): void {
    this.#settle?.reject(new SwitchyardError(code));
  }

  lose(reason: 'closed' | 'silent' | 'revoked'): void {
    this.pulls = false;
    this.options.handlers.onLost?.(reason);
  }

  readonly pushed: Uint8Array[] = [];
  readonly asked: CloudAsk[] = [];

  detect(): void {}

  readonly acknowledged: string[] = [];

  acknowledge(fingerprint: string): void {
    this.acknowledged.push(fingerprint);
  }

  async push(frame: Uint8Array): Promise<boolean> {
    this.pushed.push(Uint8Array.from(frame));
    frame.fill(0);
    return true;
  }

  ask(question: CloudAsk): boolean {
    this.asked.push(question);
    return true;
  }

  async forget(): Promise<boolean> {
    this.forgotten = true;
    return true;
  }

  close(): void {
    this.closed = true;
  }
}
