import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import { sha256Hex } from './auth.ts';

export const CONSOLE_TICKET_MS = 10 * 60_000;
export const SOCKET_TICKET_MS = 10_000;
export const SESSION_IDLE_MS = 12 * 3_600_000;
/** More are never open at once in good faith; the oldest gives way. */
const MOST = 256;

type TicketUse = 'console' | 'socket';

/**
 * Tickets and sessions of consoles in browsers, in memory only: a restart asks for a new address. Kept by hash, so that a dump
 * of memory opens nothing.
 */
export class ConsoleSessions {
  readonly #clock: Clock;
  readonly #randomBytes: (count: number) => Uint8Array;
  readonly #tickets = new Map<string, { readonly use: TicketUse; readonly untilMs: number }>();
  /** Token hash -> last use. */
  readonly #sessions = new Map<string, number>();

  constructor(clock: Clock, randomBytes: (count: number) => Uint8Array) {
    this.#clock = clock;
    this.#randomBytes = randomBytes;
  }

  /** One use, 10 min: for the fragment of the console's address. */
  issueConsoleTicket(): string {
    return this.#issue('console', CONSOLE_TICKET_MS);
  }

  /** One use, 10 s: for the sub-protocol of one WebSocket. */
  issueSocketTicket(): string {
    return this.#issue('socket', SOCKET_TICKET_MS);
  }

  /** @throws SwitchyardError invalid_ticket */
  openSession(ticket: string): string {
    this.#redeem(ticket, 'console');
    return this.#begin();
  }

  /** For somebody who has shown the admin token itself. */
  openSessionOfAdmin(): string {
    return this.#begin();
  }

  /** @throws SwitchyardError invalid_ticket */
  redeemSocketTicket(ticket: string): void {
    this.#redeem(ticket, 'socket');
  }

  /** Is this the token of a session that was used within the last 12 h; using it extends it. */
  isSession(token: string): boolean {
    const key = sha256Hex(token);
    const usedMs = this.#sessions.get(key);
    if (usedMs === undefined) return false;
    this.#sessions.delete(key);
    const nowMs = this.#clock.nowMs();
    if (nowMs - usedMs >= SESSION_IDLE_MS) return false;
    this.#sessions.set(key, nowMs); // last again: the front is the longest idle
    return true;
  }

  #begin(): string {
    const token = this.#secret();
    bounded(this.#sessions);
    this.#sessions.set(sha256Hex(token), this.#clock.nowMs());
    return token;
  }

  #issue(use: TicketUse, lifeMs: number): string {
    const ticket = this.#secret();
    bounded(this.#tickets);
    this.#tickets.set(sha256Hex(ticket), { use, untilMs: this.#clock.nowMs() + lifeMs });
    return ticket;
  }

  #redeem(ticket: string, use: TicketUse): void {
    const key = sha256Hex(ticket);
    const found = this.#tickets.get(key);
    if (found === undefined || found.use !== use) throw new SwitchyardError('invalid_ticket');
    this.#tickets.delete(key);
    if (this.#clock.nowMs() >= found.untilMs) throw new SwitchyardError('invalid_ticket');
  }

  /** 256 random bits. */
  #secret(): string {
    return Buffer.from(this.#randomBytes(32)).toString('base64url');
  }
}

function bounded(map: Map<string, unknown>): void {
  if (map.size < MOST) return;
  const oldest = map.keys().next().value;
  if (oldest !== undefined) map.delete(oldest);
}
