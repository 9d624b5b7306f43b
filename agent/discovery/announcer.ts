import type { Clock } from '../../main/domain/time.ts';
import type { Link } from '../wire/discovery/interfaces.ts';
import { type Announcement, MdnsLink, type MdnsOptions } from '../wire/discovery/mdns.ts';
import { DISCOVERY_VERSION, instanceName, type NodeHint } from '../wire/discovery/messages.ts';
import type { NoteCode, OnNote } from './notes.ts';

export interface AnnouncerOptions {
  readonly clock: Clock;
  readonly hint: NodeHint;
  readonly name: string;
  /** TCP port of the agent. */
  readonly agentPort: number;
  readonly onNote: OnNote;
  /** 5353 but in tests. */
  readonly mdnsPort?: number;
  readonly openLink?: (options: MdnsOptions) => MdnsLink;
}

/** A socket that failed is opened again after this time: the holder of the port may have gone. */
const REOPEN_MS = 15_000;
/** Between two changes of the name, and how many there may be: a neighbour must not make the agent chatter. */
const RENAME_MS = 10_000;
const MAX_ATTEMPTS = 9;

/**
 * Announces `_switchyard._tcp` on every link by an instance of its own. When the addresses change all of them are made anew: each
 * tells every address of the machine.
 */
export class Announcer {
  readonly #options: AnnouncerOptions;
  readonly #open = new Map<string, MdnsLink>();
  #addresses: readonly string[] = [];
  #attempt = 1;
  #renamedAtMs = Number.NEGATIVE_INFINITY;
  #trouble: NoteCode | null = null;
  #cancel: () => void = () => {};

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** The name under which it is announced now. */
  get instance(): string {
    return instanceName(this.#options.name, this.#options.hint.id, this.#attempt);
  }

  /** Announces on these links, anew on those where it is announced already. */
  setLinks(links: readonly Link[]): void {
    // Memberships belong to an interface: its first IPv4 address stands for it.
    const firsts = new Map<string, string>();
    for (const { name, address, family } of links) if (family === 4 && !firsts.has(name)) firsts.set(name, address);
    this.#addresses = [...firsts.values()];
    this.#announce();
  }

  /** Says goodbye on every link. */
  async stop(): Promise<void> {
    this.#cancel();
    this.#addresses = [];
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map((link) => link.close(true)));
  }

  #announce(): void {
    this.#cancel();
    for (const link of this.#open.values()) void link.close();
    this.#open.clear();
    if (this.#trouble !== null) {
      this.#options.onNote(this.#trouble, false);
      this.#trouble = null;
    }
    const { hint, agentPort, mdnsPort, openLink = (options) => new MdnsLink(options) } = this.#options;
    for (const address of this.#addresses) {
      const link = openLink({
        address,
        ...(mdnsPort === undefined ? {} : { port: mdnsPort }),
        onAnnounced: (announcements) => this.#heard(announcements),
        onTrouble: (trouble) => {
          if (this.#open.get(address) === link) this.#failed(NOTE_OF[trouble]);
        },
      });
      this.#open.set(address, link);
      link.publish({
        instance: this.instance,
        // Two machines may bear one host name, and then each would answer for the other's addresses.
        host: `switchyard-${hint.id.slice(0, 12)}.local`,
        port: agentPort,
        txt: { v: String(DISCOVERY_VERSION), id: hint.id, fp: hint.fp },
      });
    }
  }

  #failed(note: NoteCode): void {
    if (this.#trouble !== null) return; // every send repeats the error
    this.#trouble = note;
    this.#options.onNote(note, true);
    this.#cancel = this.#options.clock.after(REOPEN_MS, () => this.#announce());
  }

  /** Somebody else under this agent's name: the name changes, or a browser would show only one of both. */
  #heard(announcements: readonly Announcement[]): void {
    const { clock, hint, onNote } = this.#options;
    const name = this.instance.toLowerCase();
    const taken = announcements.some(
      ({ instance, txt, gone }) => !gone && instance.toLowerCase() === name && txt.id !== hint.id,
    );
    const nowMs = clock.nowMs();
    if (!taken || this.#attempt >= MAX_ATTEMPTS || nowMs - this.#renamedAtMs < RENAME_MS) return;
    this.#renamedAtMs = nowMs;
    this.#attempt += 1;
    onNote('discovery_name_taken', true);
    this.#announce();
  }
}

const NOTE_OF = { held: 'discovery_port_held', forbidden: 'discovery_forbidden', failed: 'discovery_failed' } as const;
