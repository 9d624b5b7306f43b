import type { Connection } from './connections.ts';
import type { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { SharedLook } from './shared-look.ts';

/** Sends a cheap request over the connection, opening it if need be. Rejects when it is not answered. */
export type Touch = (connection: Connection, signal?: AbortSignal) => Promise<void>;

interface Witness {
  readonly connection: Connection;
  readonly generation: number;
  /** True: it has answered, on the socket it had from the beginning. One request at a time. */
  readonly answers: SharedLook<boolean>;
}

interface Membership {
  readonly generation: number;
  readonly number: number;
}

/** Two, opened one after the other: servers end a connection after so many requests, and both must not end in one moment. */
const WITNESSES = 2;
const TRIES = 3;

/**
 * Which connections to an engine lead to one and the same process, where nothing else tells. A restart breaks every connection
 * of a server, so two that were open at one moment, and have both answered since, lead to the same process. Two kept
 * connections, the witnesses, are asked again and again; a new one joins them once a witness has answered after it was
 * opened. When no witness answers any more a new chain begins under the next number: `connection:<random>-<number>`.
 */
export class ConnectionChain {
  readonly #http: EngineHttp;
  readonly #touch: Touch;
  /** Distinguishes this agent's life from an earlier one, whose numbers came again. */
  readonly #token: string;
  readonly #members = new WeakMap<Connection, Membership>();
  readonly #look = new SharedLook(() => this.#anyAnswers());
  #number = 0;
  #witnesses: readonly Witness[] = [];
  #beginning: Promise<void> | null = null;
  #beating = false;

  constructor(http: EngineHttp, touch: Touch, token: string) {
    this.#http = http;
    this.#touch = touch;
    this.#token = token;
  }

  get mark(): string {
    return `connection:${this.#token}-${this.#number}`;
  }

  /**
   * Mark of the chain that the connection belongs to now, opening it if need be.
   * @throws EngineFailure `fingerprint_changed` when it cannot be shown to belong to any (a server that keeps no connection)
   */
  async join(connection: Connection, signal?: AbortSignal): Promise<string> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (!connection.connected) await this.#touch(connection, signal);
      if (this.#belongs(connection)) return this.mark;
      const { generation } = connection;
      const number = this.#number;
      if (await this.#look.read()) {
        // The witness was there before this socket and after it.
        if (this.#admit(connection, generation, number)) return this.mark;
        continue;
      }
      await this.#begin(number);
      const begun = this.#number;
      // The socket is older than the new witness: now it is the one that has to answer.
      await this.#touch(connection, signal);
      if (this.#admit(connection, generation, begun)) return this.mark;
    }
    throw new EngineFailure(
      'fingerprint_changed',
      {},
      'The engine keeps no connection that would show it is the same.',
    );
  }

  /** Asks every witness, so that they stay open, and finds a further one where one is missing. Runs by itself. */
  beat(): void {
    if (this.#beating || this.#number === 0 || this.#http.closed) return;
    this.#beating = true;
    void this.#renew()
      .catch(() => undefined)
      .finally(() => {
        this.#beating = false;
      });
  }

  /** Another process was seen behind connections that still stand (a proxy): nothing that joined counts any more. */
  end(): void {
    for (const witness of this.#witnesses) this.#http.drop(witness.connection);
    this.#witnesses = [];
    this.#number++;
  }

  #belongs(connection: Connection): boolean {
    const member = this.#members.get(connection);
    return connection.connected && member?.number === this.#number && member.generation === connection.generation;
  }

  #admit(connection: Connection, generation: number, number: number): boolean {
    if (connection.generation !== generation || this.#number !== number) return false;
    this.#members.set(connection, { generation, number });
    return true;
  }

  async #anyAnswers(): Promise<boolean> {
    for (const witness of this.#witnesses) {
      if (await witness.answers.read()) return true;
      this.#dismiss(witness);
    }
    return false;
  }

  async #answers(connection: Connection, generation: number): Promise<boolean> {
    if (!connection.connected || connection.generation !== generation) return false;
    try {
      await this.#touch(connection);
    } catch {
      return false;
    }
    return connection.generation === generation;
  }

  #dismiss(witness: Witness): void {
    this.#witnesses = this.#witnesses.filter((one) => one !== witness);
    this.#http.drop(witness.connection);
  }

  /** A new chain after the numbered one, unless somebody has begun it meanwhile. */
  #begin(after: number): Promise<void> {
    if (this.#number !== after) return Promise.resolve();
    this.#beginning ??= this.#open().finally(() => {
      this.#beginning = null;
    });
    return this.#beginning;
  }

  async #open(): Promise<void> {
    const witness = await this.#opened();
    this.#number++;
    this.#witnesses = [witness];
  }

  async #opened(): Promise<Witness> {
    if (this.#http.closed) throw new EngineFailure('engine_unreachable');
    const connection = this.#http.take();
    try {
      await this.#touch(connection);
    } catch (error) {
      this.#http.drop(connection);
      throw error;
    }
    const { generation } = connection;
    return { connection, generation, answers: new SharedLook(() => this.#answers(connection, generation)) };
  }

  async #renew(): Promise<void> {
    const number = this.#number;
    for (const witness of this.#witnesses) if (!(await witness.answers.read())) this.#dismiss(witness);
    if (this.#witnesses.length === 0) return this.#begin(number);
    if (this.#witnesses.length >= WITNESSES) return;
    const further = await this.#opened();
    const holds = (await this.#look.read()) && this.#number === number;
    if (holds && further.connection.generation === further.generation) this.#witnesses = [...this.#witnesses, further];
    else this.#http.drop(further.connection);
  }
}
