import { isIP, isIPv6 } from 'node:net';
import type { Clock } from '../../main/domain/time.ts';
import { type Link, LinkWatch, type ReadInterfaces } from '../wire/discovery/interfaces.ts';
import type { NodeHint } from '../wire/discovery/messages.ts';
import { Announcer } from './announcer.ts';
import { NOTES, type NoteCode } from './notes.ts';
import { BroadcastResponder } from './responder.ts';

export interface AdvertiserOptions {
  readonly clock: Clock;
  readonly interfaces: ReadInterfaces;
  readonly hint: NodeHint;
  readonly name: string;
  /** Where the agent really listens. */
  readonly host: string;
  readonly port: number;
  /** A note began to hold. */
  readonly onNote: (note: AdvertiserNote) => void;
  /** For tests: loopback counts as a link, and other UDP ports. */
  readonly lab?: { readonly loopback: boolean; readonly mdnsPort: number; readonly queryPort: number };
}

export interface AdvertiserNote {
  readonly code: NoteCode;
  readonly sentence: string;
}

/** Lets control planes on the same links find this agent, while it runs. */
export class Advertiser {
  readonly #options: AdvertiserOptions;
  readonly #announcer: Announcer;
  readonly #responder: BroadcastResponder;
  readonly #watch: LinkWatch;
  readonly #notes = new Set<NoteCode>();

  constructor(options: AdvertiserOptions) {
    this.#options = options;
    const { clock, hint, name, host, port: agentPort, interfaces, lab } = options;
    const onNote = (code: NoteCode, holds: boolean) => this.#note(code, holds);
    this.#announcer = new Announcer({
      clock,
      hint,
      name,
      agentPort,
      onNote,
      ...(lab ? { mdnsPort: lab.mdnsPort } : {}),
    });
    this.#responder = new BroadcastResponder({
      clock,
      hint,
      name,
      agentPort,
      families: familiesOf(host),
      onNote,
      ...(lab ? { port: lab.queryPort } : {}),
    });
    this.#watch = new LinkWatch({
      clock,
      read: interfaces,
      loopback: lab?.loopback ?? false,
      onLinks: (links) => {
        const reached = links.filter((link) => reaches(host, link));
        this.#responder.setLinks(reached);
        this.#announcer.setLinks(reached);
      },
    });
  }

  /** What keeps the agent from being found now. */
  notes(): readonly AdvertiserNote[] {
    return [...this.#notes].map((code) => ({ code, sentence: NOTES[code] }));
  }

  start(): void {
    this.#responder.start();
    this.#watch.start();
  }

  async stop(): Promise<void> {
    this.#watch.stop();
    this.#responder.stop();
    await this.#announcer.stop();
  }

  #note(code: NoteCode, holds: boolean): void {
    if (!holds) {
      this.#notes.delete(code);
    } else if (!this.#notes.has(code)) {
      this.#notes.add(code);
      this.#options.onNote({ code, sentence: NOTES[code] });
    }
  }
}

/** Families in which an agent that listens at `host` can be dialled. */
function familiesOf(host: string): readonly (4 | 6)[] {
  if (host === '::') return [4, 6];
  return isIPv6(host) ? [6] : [4];
}

/** An agent that listens at one address is found only there, and one on loopback nowhere. */
function reaches(host: string, link: Link): boolean {
  if (host === '::') return true;
  if (host === '0.0.0.0') return link.family === 4;
  return isIP(host) !== 0 && host.toLowerCase() === link.address;
}
