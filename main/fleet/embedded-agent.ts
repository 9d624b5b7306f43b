import { z } from 'zod';
import type { EventSink } from '../domain/events.ts';
import type { NodeId } from '../domain/ids.ts';
import { said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import type { NodeTarget } from './fleet-node.ts';

/** A running agent process, however it was started: child process under Node, utility process under Electron. */
export interface AgentProcess {
  readonly pid: number | undefined;
  /** One line of JSON to the agent: over a pipe or a message port, never argv or environment. */
  send(line: string): void;
  /** Asks it to end; `kill` does not ask. */
  end(): void;
  kill(): void;
}

export interface AgentProcessHandlers {
  /** A line the agent printed. */
  onLine(line: string): void;
  onExit(): void;
}

export type StartAgentProcess = (handlers: AgentProcessHandlers) => AgentProcess;

export interface EmbeddedAgentOptions {
  readonly controller: string;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly events: EventSink;
  readonly start: StartAgentProcess;
  /** It listens and waits for its one control plane. */
  readonly onUp: (node: NodeId, target: NodeTarget) => void;
  readonly onDown: () => void;
}

const Ready = z.object({
  ready: z.literal(true),
  node: z.string().min(1).max(128),
  listen: z.string().min(1).max(128),
  fingerprint: z.string().regex(/^[0-9a-f]{64}$/),
});

const RESTART_FIRST_MS = 500;
const RESTART_LONGEST_MS = 30_000;
/** An agent that ran this long starts the count of failures anew. */
const STEADY_MS = 60_000;
const END_GRACE_MS = 3_000;

/**
 * The agent of this very machine, a process of its own so that no cloud key stays in this one. Its node key is fresh for each
 * process and crosses one pipe; nothing of it rests. Restarted with growing waits when it ends unasked.
 */
export class EmbeddedAgent {
  readonly #options: EmbeddedAgentOptions;
  #process: AgentProcess | null = null;
  #stopped = true;
  #failures = 0;
  #cancelRestart: () => void = () => {};

  constructor(options: EmbeddedAgentOptions) {
    this.#options = options;
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Starts the process and returns at once. */
  start(): void {
    this.#stopped = false;
    this.#launch();
  }

  /** Resolves when the process has ended; after 3 s it is killed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRestart();
    const running = this.#process;
    if (!running) return;
    await new Promise<void>((resolve) => {
      this.#onEnd = resolve;
      running.end();
      this.#options.clock.after(END_GRACE_MS, () => running.kill());
    });
  }

  #onEnd: () => void = () => {};

  #launch(): void {
    const { clock, controller, randomBytes, start, onUp } = this.#options;
    const startedAtMs = clock.nowMs();
    const key = randomBytes(32);
    const process = start({
      onLine: (line) => {
        const ready = readReady(line);
        if (!ready || this.#process !== process) return;
        onUp(ready.node as NodeId, { address: ready.listen, fingerprint: ready.fingerprint, key });
      },
      onExit: () => {
        if (this.#process !== process) return;
        this.#process = null;
        this.#options.onDown();
        this.#onEnd();
        if (!this.#stopped) this.#restart(clock.nowMs() - startedAtMs);
      },
    });
    this.#process = process;
    process.send(JSON.stringify({ controller, nodeKey: Buffer.from(key).toString('base64') }));
  }

  #restart(ranMs: number): void {
    this.#failures = ranMs >= STEADY_MS ? 1 : this.#failures + 1;
    const delayMs = Math.min(RESTART_LONGEST_MS, RESTART_FIRST_MS * 2 ** (this.#failures - 1));
    this.#options.events.record({
      severity: this.#failures > 3 ? 'error' : 'warn',
      source: 'fleet',
      says: said('embedded_agent_ended', { delayMs }),
      needsPerson: this.#failures > 3,
    });
    this.#cancelRestart = this.#options.clock.after(delayMs, () => this.#launch());
  }
}

function readReady(line: string): z.infer<typeof Ready> | null {
  try {
    const parsed = Ready.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
