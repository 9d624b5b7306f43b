import { Bonjour } from 'bonjour-service';
import { z } from 'zod';
import { SERVICE_NAME, SERVICE_TYPE } from './messages.ts';

/** What happened to the socket on port 5353. `held`: another program has the port for itself. */
export type MdnsTrouble = 'held' | 'forbidden' | 'failed';

/** An agent as one mDNS message describes it; nothing of it is proved. */
export interface Announcement {
  /** `workstation (1a2b3c4d)`. */
  readonly instance: string;
  readonly port: number;
  /** TXT members. */
  readonly txt: Readonly<Record<string, string>>;
  /** The agent says goodbye. */
  readonly gone: boolean;
}

export interface MdnsOptions {
  /** IPv4 address of the interface to speak on. */
  readonly address: string;
  /** 5353 but in tests. */
  readonly port?: number;
  /** Announcements in one message, with the IPv4 address it came from. Heard from every link, not only this one. */
  onAnnounced(announcements: readonly Announcement[], from: string): void;
  onTrouble(trouble: MdnsTrouble): void;
}

export interface PublishedService {
  /** At most 63 bytes, no dots. */
  readonly instance: string;
  readonly host: string;
  readonly port: number;
  readonly txt: Readonly<Record<string, string>>;
}

/** The parts of `multicast-dns` inside a Bonjour object; its own types keep them private. */
interface Transport {
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): void;
  on(event: 'warning', listener: () => void): void;
  on(event: 'response', listener: (packet: unknown, from: { readonly address: string }) => void): void;
  query(name: string, type: string): void;
}

const GOODBYE_MS = 500;
const MAX_RECORDS = 256;

/**
 * An mDNS socket that speaks on one interface. `interface` alone would bind the socket to a unicast address, to which Linux
 * delivers no multicast; without it the default route decides, which a VPN may own. An error of the socket is reported, never
 * thrown: another program may hold port 5353 for itself.
 */
export class MdnsLink {
  readonly #bonjour: Bonjour;
  readonly #transport: Transport;
  #closed = false;

  constructor({ address, port, onAnnounced, onTrouble }: MdnsOptions) {
    const trouble = (error: NodeJS.ErrnoException) => {
      if (this.#closed) return;
      onTrouble(error.code === 'EADDRINUSE' ? 'held' : error.code === 'EACCES' ? 'forbidden' : 'failed');
    };
    // The types know only the options of a service; the rest goes to multicast-dns.
    const options = { interface: address, bind: '0.0.0.0', ...(port === undefined ? {} : { port }) };
    this.#bonjour = new Bonjour(options as object, trouble);
    this.#transport = (this.#bonjour as unknown as { server: { mdns: Transport } }).server.mdns;
    this.#transport.on('error', trouble);
    this.#transport.on('warning', () => {}); // a message that is not DNS, an interface that went: no fault of ours
    this.#transport.on('response', (packet, { address: from }) => {
      if (this.#closed) return;
      const announcements = readAnnouncements(packet);
      if (announcements.length > 0) onAnnounced(announcements, from);
    });
  }

  /**
   * Announces, and answers queries until `close`. The library's own look for a name that is taken is left out: it ends the
   * announcing without a word.
   */
  publish({ instance, host, port, txt }: PublishedService): void {
    this.#bonjour.publish({ name: instance, type: SERVICE_TYPE, host, port, txt, probe: false });
  }

  /** Asks the link who is there. */
  query(): void {
    if (!this.#closed) this.#transport.query(SERVICE_NAME, 'PTR');
  }

  /** @param goodbye tell the link that the service ends; without it others forget when their records expire */
  async close(goodbye = false): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (goodbye) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, GOODBYE_MS);
        this.#bonjour.unpublishAll(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    try {
      this.#bonjour.destroy();
    } catch {
      // the socket never came up: nothing is left to close
    }
  }
}

const Srv = z.object({ port: z.number().int().min(1).max(65_535) });
const DnsRecord = z.object({
  name: z.string().max(512),
  type: z.string().max(16),
  ttl: z.number().optional(),
  data: z.unknown(),
});
const Packet = z.object({
  answers: z.array(z.unknown()).max(MAX_RECORDS),
  additionals: z.array(z.unknown()).max(MAX_RECORDS),
});

/** The services of our type that one decoded mDNS message describes whole. Anything that is not so is left out. */
export function readAnnouncements(packet: unknown): readonly Announcement[] {
  const parsed = Packet.safeParse(packet);
  if (!parsed.success) return [];
  const records = [...parsed.data.answers, ...parsed.data.additionals].flatMap((record) => {
    const { data } = DnsRecord.safeParse(record);
    return data === undefined ? [] : [{ ...data, name: data.name.toLowerCase() }];
  });
  const found = new Map<string, Announcement>();
  for (const pointer of records) {
    const full = pointer.data;
    if (pointer.type !== 'PTR' || pointer.name !== SERVICE_NAME || typeof full !== 'string') continue;
    const key = full.toLowerCase();
    const of = (type: string) => records.find((record) => record.type === type && record.name === key)?.data;
    const srv = Srv.safeParse(of('SRV'));
    if (!key.endsWith(`.${SERVICE_NAME}`) || !srv.success) continue;
    found.set(key, {
      instance: full.slice(0, -SERVICE_NAME.length - 1),
      port: srv.data.port,
      txt: readTxt(of('TXT')),
      gone: pointer.ttl === 0,
    });
  }
  return [...found.values()];
}

function readTxt(data: unknown): Readonly<Record<string, string>> {
  const entries = (Array.isArray(data) ? data : [data]).slice(0, 16).flatMap((item) => {
    if (!(item instanceof Uint8Array)) return [];
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(Buffer.from(item).toString('utf8')) ?? [];
    return name === undefined || value === undefined ? [] : [[name.toLowerCase(), value] as const];
  });
  return Object.fromEntries(entries);
}
