import { setTimeout as wait } from 'node:timers/promises';
import type { LedgerEntry } from '../engines/openrouter.ts';
import { type CloudHouse, until } from './cloud.ts';

/** Clients that ask again as soon as they are answered. */
export class Demand {
  readonly #house: CloudHouse;
  readonly #leave = new AbortController();
  readonly #clients: Promise<void>[] = [];
  answered = 0;
  readonly statuses = new Map<number, number>();
  /** Machines that answered. */
  readonly nodes = new Set<string>();

  constructor(house: CloudHouse) {
    this.#house = house;
  }

  /** `name` is the first word of each prompt, so that the books tell who asked. */
  chats(clients: number, name: string, headers: Record<string, string> = {}, body: object = {}): this {
    const make = (content: string) => ({
      model: 'code-assistant',
      max_tokens: 2,
      messages: [{ role: 'user', content }],
      ...body,
    });
    return this.#add(clients, '/v1/chat/completions', name, make, headers);
  }

  reranks(clients: number, name: string, headers: Record<string, string> = {}): this {
    const make = (query: string) => ({ model: 'reranker', query, documents: ['a', 'b'] });
    return this.#add(clients, '/v1/rerank', name, make, headers);
  }

  /** Five chats to one rerank. */
  mixed(clients: number, name: string, headers: Record<string, string> = {}): this {
    const reranks = Math.ceil(clients / 6);
    return this.chats(clients - reranks, name, headers).reranks(reranks, name, headers);
  }

  #add(
    clients: number,
    route: string,
    name: string,
    make: (text: string) => object,
    headers: Record<string, string>,
  ): this {
    for (let at = 0; at < clients; at++) this.#clients.push(this.#ask(route, name, make, headers));
    return this;
  }

  async #ask(
    route: string,
    name: string,
    make: (text: string) => object,
    headers: Record<string, string>,
  ): Promise<void> {
    const { endpoint, apiKey } = this.#house.plane;
    while (!this.#leave.signal.aborted) {
      try {
        const response = await fetch(`${endpoint}${route}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
          body: JSON.stringify(make(`${name} ${Math.random()}`)),
          signal: this.#leave.signal,
        });
        await response.arrayBuffer();
        this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1);
        // role~node~engine~model
        this.nodes.add(response.headers.get('x-switchyard-provider')?.split('~')[1] ?? 'nobody');
        if (response.status === 200) this.answered++;
        else await wait(50);
      } catch {
        // left
      }
    }
  }

  async stop(): Promise<void> {
    this.#leave.abort();
    await Promise.all(this.#clients);
  }
}

/** First word of the prompt or query. */
export const projectOf = ({ body }: LedgerEntry) => {
  const text = body.query ?? (body.messages as { content: string }[] | undefined)?.[0]?.content;
  return String(text).split(' ', 1)[0] ?? '';
};
export const endOf = ({ endMs }: LedgerEntry) => endMs ?? Number.POSITIVE_INFINITY;

/** Calls that a moment at the stand-in held, refused ones aside. */
export function runningAt(calls: readonly LedgerEntry[], atMs: number): readonly LedgerEntry[] {
  return calls.filter((call) => call.status === 200 && call.startMs <= atMs && endOf(call) > atMs);
}

/** Mean share of a limit in use between two moments. */
export function used(calls: readonly LedgerEntry[], fromMs: number, toMs: number, limit: number): number {
  let busyMs = 0;
  for (const call of calls) {
    if (call.status === 200) busyMs += Math.max(0, Math.min(endOf(call), toMs) - Math.max(call.startMs, fromMs));
  }
  return busyMs / (limit * (toMs - fromMs));
}

/** Waits until so many have run at once: between two calls a permit is not at the stand-in, so it takes some to meet. */
export async function reached(house: CloudHouse, count: number): Promise<number> {
  await until(async () => (await house.standIn.books()).mostRunning >= count);
  await wait(1000);
  return (await house.standIn.books()).mostRunning;
}

export const refusals = (calls: readonly LedgerEntry[]) => calls.filter(({ status }) => status === 429);
