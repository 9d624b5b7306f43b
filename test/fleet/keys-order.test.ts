import { describe, expect, it } from 'vitest';
import { AnnouncedKey, type NodeKeys } from '../../main/fleet/announced-key.ts';
import type { AgentLink } from '../../main/fleet/link.ts';
import { uniform } from '../engines/seeded.ts';

/** The agent's side of decision 131: a further key is shown when every control plane has acknowledged it. */
class AgentKeys {
  shown = 'k0';
  next: string | null = null;
  readonly #known = new Set<number>();
  readonly #desks: number;
  #made = 0;

  constructor(desks: number) {
    this.#desks = desks;
  }

  get announced(): string {
    return this.next ?? this.shown;
  }

  rotate(): void {
    this.#made += 1;
    this.next ??= `k${this.#made}`;
  }

  acknowledged(desk: number, key: string): void {
    if (key !== this.next) return;
    this.#known.add(desk);
    if (this.#known.size < this.#desks) return;
    this.shown = key;
    this.next = null;
    this.#known.clear();
  }

  restart(): void {
    this.#known.clear();
  }
}

/** One control plane. What is on its way to and from it arrives in order, some time later, or is lost with the connection. */
class Desk {
  keys: NodeKeys = { fingerprint: 'k0', nextFingerprint: null };
  link: AgentLink | null = null;
  readonly heartbeats: string[] = [];
  readonly acknowledgements: string[] = [];
  #announced = this.#fresh();

  #fresh(): AnnouncedKey {
    return new AnnouncedKey({
      keys: () => this.keys,
      hold: (keys) => {
        this.keys = keys;
      },
      keep: async () => undefined,
      isCurrent: (link) => this.link === link,
    });
  }

  /** @returns false: it would take the agent for another machine. */
  dial(agent: AgentKeys): boolean {
    if (this.link !== null) return true;
    const { fingerprint, nextFingerprint } = this.keys;
    if (agent.shown !== fingerprint && agent.shown !== nextFingerprint) return false;
    this.link = { acknowledge: (key: string) => void this.acknowledgements.push(key) } as unknown as AgentLink;
    if (agent.shown !== fingerprint) this.#announced.used(agent.shown);
    return true;
  }

  drop(): void {
    this.link = null;
    this.heartbeats.length = 0;
    this.acknowledgements.length = 0;
  }

  restart(): void {
    this.drop();
    this.#announced = this.#fresh();
  }

  hear(): void {
    const announced = this.heartbeats.shift();
    if (announced !== undefined && this.link !== null) this.#announced.hear(announced, this.link);
  }
}

const OFTEN = ['dial', 'beat', 'hear', 'ack'] as const;
const SELDOM = ['rotate', 'rotate', 'drop', 'drop', 'restart', 'agent'] as const;

/** Keys that were shown in this order of events; throws when a control plane is locked out. */
async function play(seed: number, steps: number): Promise<number> {
  const random = uniform(seed);
  const desks = [new Desk(), new Desk()];
  const agent = new AgentKeys(desks.length);
  const past: string[] = [];
  const seen = new Set<string>();
  for (let step = 0; step < steps; step++) {
    const which = random() < 0.5 ? 0 : 1;
    const desk = desks[which] as Desk;
    const acts = random() < 0.85 ? OFTEN : SELDOM;
    const act = acts[Math.floor(random() * acts.length)];
    past.push(`${act} ${which}`);
    if (act === 'dial' && !desk.dial(agent))
      throw new Error(`desk ${which} knows ${JSON.stringify(desk.keys)}, shown is ${agent.shown}: ${past.join(', ')}`);
    if (act === 'drop') desk.drop();
    if (act === 'beat' && desk.link) desk.heartbeats.push(agent.announced);
    if (act === 'hear') desk.hear();
    if (act === 'ack') agent.acknowledged(which, desk.acknowledgements.shift() ?? '');
    if (act === 'rotate') agent.rotate();
    if (act === 'restart') desk.restart();
    if (act === 'agent') {
      agent.restart();
      for (const each of desks) each.drop();
    }
    for (let turn = 0; turn < 4; turn++) await null;
    seen.add(agent.shown);
  }
  return seen.size;
}

describe('keys that change while sessions come and go', () => {
  it('lock no control plane out, in whatever order things happen', async () => {
    let shown = 0;
    for (let run = 0; run < 500; run++) shown += await play(run, 800);
    // Keys really changed, several times a run: otherwise nothing was looked at.
    expect(shown).toBeGreaterThan(500 * 3);
  });
});
