import type { RoleId } from '../../main/domain/roles.ts';
import { CLIENT_MARK } from './engines-child.ts';
import type { Outcome } from './figures.ts';
import type { Project } from './fleet.ts';

interface Call {
  readonly role: RoleId;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Client {
  readonly project: Project;
  /** Calls a second when nothing presses, and at the height of a wave. */
  readonly rate: readonly [calm: number, pressed: number];
  readonly next: (random: () => number) => Call;
}

/** Waves: calm, then more than the machines can do, so that work overflows and the account's limit is met. */
const WAVE_MS = 48_000;

const PLACES = ['coupling', 'siding', 'hump', 'points', 'signal box', 'turntable', 'buffer', 'ladder'] as const;
const pick = <Item>(all: readonly Item[], random: () => number): Item => all[Math.floor(random() * all.length)] as Item;
const sentence = (random: () => number): string =>
  `The ${CLIENT_MARK} ${Math.floor(random() * 1e6)} waits at the ${pick(PLACES, random)} behind the ${pick(PLACES, random)}.`;
const batch = (count: number, random: () => number): string[] => Array.from({ length: count }, () => sentence(random));

const chat = (role: RoleId, maxTokens: number, random: () => number): Call => ({
  role,
  path: '/v1/chat/completions',
  body: {
    model: role,
    stream: true,
    max_tokens: maxTokens,
    messages: [{ role: 'user', content: `Where should it go? ${sentence(random)}` }],
  },
});
const embed = (role: RoleId, least: number, most: number, random: () => number): Call => ({
  role,
  path: '/v1/embeddings',
  body: {
    model: role,
    encoding_format: 'base64',
    input: batch(least + Math.floor(random() * (most - least)), random),
  },
});

const CLIENTS: readonly Client[] = [
  {
    project: 'editor',
    rate: [0.6, 2.1],
    next: (random) => chat('code-assistant', 24 + Math.floor(random() * 64), random),
  },
  { project: 'editor', rate: [0.4, 0.8], next: (random) => embed('embedding', 1, 3, random) },
  {
    project: 'editor',
    rate: [0.3, 0.9],
    next: (random) => ({
      role: 'reranker',
      path: '/v1/rerank',
      body: { model: 'reranker', query: `${CLIENT_MARK} at the points`, documents: batch(8, random) },
    }),
  },
  { project: 'indexer', rate: [0.25, 0.6], next: (random) => embed('embedding', 48, 160, random) },
  { project: 'indexer', rate: [0.2, 0.35], next: (random) => embed('code-embedding', 16, 64, random) },
  { project: 'sandbox', rate: [0.3, 2], next: (random) => chat('rlm', 32 + Math.floor(random() * 32), random) },
];

export interface TrafficPorts {
  readonly endpoint: string;
  readonly keyOf: (project: Project) => string;
  readonly random: () => number;
  readonly onEnd: (outcome: Outcome) => void;
}

/** Clients that come by chance, at a rate that rises and falls; each takes its answer to the end. */
export class Traffic {
  readonly #ports: TrafficPorts;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #running = new Set<Promise<void>>();
  readonly #left = new AbortController();
  #beganMs = 0;

  constructor(ports: TrafficPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#beganMs = performance.now();
    for (const client of CLIENTS) this.#plan(client);
  }

  /** No new calls; those that run may end for a while, then they are left. */
  async stop(graceMs = 5_000): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    const late = setTimeout(() => this.#left.abort(), graceMs);
    await Promise.all(this.#running);
    clearTimeout(late);
  }

  #plan(client: Client): void {
    const [calm, pressed] = client.rate;
    const phase = ((performance.now() - this.#beganMs) % WAVE_MS) / WAVE_MS;
    const pressure = Math.max(0, Math.sin(2 * Math.PI * (phase - 0.15)));
    const rate = calm + (pressed - calm) * pressure;
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        this.#plan(client);
        const run = this.#call(client.project, client.next(this.#ports.random)).finally(() =>
          this.#running.delete(run),
        );
        this.#running.add(run);
      },
      (-1000 * Math.log(1 - this.#ports.random())) / rate,
    );
    this.#timers.add(timer);
  }

  async #call(project: Project, { role, path, body }: Call): Promise<void> {
    const beganMs = performance.now();
    let route: string | null = null;
    let failure: string | null = null;
    try {
      const response = await fetch(this.#ports.endpoint + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.#ports.keyOf(project)}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: this.#left.signal,
      });
      route = response.headers.get('x-switchyard-route');
      const text = await response.text();
      failure = failureOf(response.status, body.stream === true, text);
    } catch {
      if (this.#left.signal.aborted) return;
      failure = 'connection_lost';
    }
    this.#ports.onEnd({ role, route, failure, totalMs: performance.now() - beganMs });
  }
}

/** The error code of an answer; a stream must also end as a whole one does. */
function failureOf(status: number, stream: boolean, text: string): string | null {
  if (status < 400 && (!stream || text.trimEnd().endsWith('data: [DONE]'))) return null;
  return /"code":\s*"([a-z_]+)"/.exec(text)?.[1] ?? (status < 400 ? 'stream_broken' : `http_${status}`);
}
