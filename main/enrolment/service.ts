import type { JoinAnswer, JoinReport, StepReport } from '../../agent/wire/enrolment.ts';
import type { EnrolmentView } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { EventSink } from '../domain/events.ts';
import type { NodeId } from '../domain/ids.ts';
import { type Said, said, saidOf, together } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import { formatAddress } from '../fleet/address.ts';
import { makeFreshKey } from './certificate.ts';
import { posixCommand, powershellCommand } from './commands.ts';
import { Enrolment, type Wish } from './enrolment.ts';
import { meetingAddress, type OwnNetwork } from './interfaces.ts';
import { type EnrolFiles, type Listener, openListener } from './listener.ts';
import { detailSentence, optionsFor, stepSentence } from './steps.ts';
import { makeToken } from './token.ts';

/** What adding a machine takes of the computer that this runs on. */
export interface EnrolmentPlace {
  readonly network: OwnNetwork;
  /** Null where the installer was not built. Asked for each command: a build may come later. */
  readonly files: () => Promise<EnrolFiles | null>;
}

/** For a control plane without installer: it says so when a command is asked for. */
export const noEnrolment: EnrolmentPlace = {
  network: { interfaces: () => ({}), defaultAddress: async () => null },
  files: async () => null,
};

export interface EnrolmentOptions extends EnrolmentPlace {
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly events: EventSink;
  /** The name by which the machine will know this control plane. */
  readonly controlPlane: string;
  /** Pairs with the agent that shows this key. @throws SwitchyardError */
  readonly add: (address: string, joinCode: string, fingerprint: string) => Promise<NodeId>;
  /** The providers of this machine have this base weight from now on. */
  readonly weigh: (node: NodeId, name: string, baseWeight: number) => void;
  readonly open?: typeof openListener;
}

export interface NewEnrolment extends Wish {
  /** One of this computer's own; null: the one that the default route has. */
  readonly address: string | null;
}

export interface MadeEnrolment {
  readonly enrolment: EnrolmentView;
  readonly commands: { readonly posix: string; readonly powershell: string };
}

/** At once; each holds a port and the archive. */
const MOST_OPEN = 8;
/** Of those that are over. */
const MOST_KEPT = 16;
/** A token in wrong hands could report failures for ever; the events of people stay readable. */
const MOST_FAILURES_TOLD = 5;

interface Entry {
  readonly enrolment: Enrolment;
  readonly listener: Listener;
  failuresTold: number;
  joining: Promise<unknown> | null;
  cancelTimer: () => void;
}

/** The machines that are being added by a one-time command. They live in memory: a restart withdraws their commands. */
export class EnrolmentService {
  readonly #options: EnrolmentOptions;
  readonly #entries = new Map<string, Entry>();
  #making = 0;
  #stopped = false;

  constructor(options: EnrolmentOptions) {
    this.#options = options;
  }

  /**
   * Opens the one-time address and makes the commands that lead to it.
   *
   * @throws SwitchyardError not_ready without the installer's files, invalid_address, too_many_enrolments
   */
  async create({ address: chosen, ...wish }: NewEnrolment): Promise<MadeEnrolment> {
    const { clock, randomBytes, network, events } = this.#options;
    const open = [...this.#entries.values()].filter(({ enrolment }) => !enrolment.over).length;
    if (open + this.#making >= MOST_OPEN) throw new SwitchyardError('too_many_enrolments');
    this.#making += 1;
    try {
      const files = await this.#options.files();
      if (files === null) throw new SwitchyardError('not_ready', said('no_installer'));
      const address = await meetingAddress(network, chosen);
      const key = await makeFreshKey();
      const token = makeToken(randomBytes);
      const enrolment = new Enrolment(Buffer.from(randomBytes(9)).toString('base64url'), wish, clock);
      const listener = await this.#open(enrolment, { address, key, token, files });
      if (this.#stopped) {
        listener.close();
        throw new SwitchyardError('not_ready');
      }
      const entry: Entry = {
        enrolment,
        listener,
        failuresTold: 0,
        joining: null,
        cancelTimer: () => {},
      };
      this.#entries.set(enrolment.id, entry);
      this.#look(entry);
      this.#forgetOld();
      events.record({
        severity: 'info',
        source: 'fleet',
        says: said('enrolment_made', { untilAtMs: enrolment.expiresAtMs }),
      });
      const meeting = { address, port: listener.port, token, pin: key.pin };
      return {
        enrolment: viewOf(enrolment),
        commands: { posix: posixCommand(meeting), powershell: powershellCommand(meeting) },
      };
    } finally {
      this.#making -= 1;
    }
  }

  /** Newest first; the last few that are over, too. */
  list(): EnrolmentView[] {
    return [...this.#entries.values()].map(({ enrolment }) => viewOf(enrolment)).reverse();
  }

  /** Withdraws a command, or takes one that is over off the list. @throws SwitchyardError enrolment_not_found */
  async cancel(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (!entry) throw new SwitchyardError('enrolment_not_found');
    // A pairing under way ends one way or the other; only then is it known what there is to withdraw.
    await entry.joining;
    if (!this.#entries.delete(id)) return;
    this.#close(entry);
    if (!entry.enrolment.over) this.#tell('info', said('enrolment_withdrawn'));
  }

  /** Every command is withdrawn. Resolves when no pairing runs any more. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const entry of this.#entries.values()) this.#close(entry);
    await Promise.all([...this.#entries.values()].map(({ joining }) => joining));
    for (const { enrolment } of this.#entries.values()) {
      if (!enrolment.over) this.#tell('warn', said('enrolment_ended_by_stop'));
    }
    this.#entries.clear();
  }

  async #open(
    enrolment: Enrolment,
    place: Pick<Parameters<typeof openListener>[0], 'address' | 'key' | 'token' | 'files'>,
  ): Promise<Listener> {
    const { clock, controlPlane, open = openListener } = this.#options;
    const entry = () => this.#entries.get(enrolment.id);
    try {
      return await open({
        ...place,
        clock,
        desk: {
          alive: () => !this.#stopped && !enrolment.over && entry() !== undefined,
          options: () => optionsFor(enrolment.wish, controlPlane),
          step: (report, from) => {
            const known = entry();
            if (known) this.#heard(known, report, report.detail && detailSentence(report.detail), from);
          },
          join: async (report, from) => {
            const known = entry();
            if (!known || known.joining) return { state: 'failed', code: 'node_exists' };
            const joining = this.#join(known, report, from);
            known.joining = joining;
            const answer = await joining;
            known.joining = null;
            this.#look(known);
            return answer;
          },
        },
      });
    } catch {
      throw new SwitchyardError('invalid_address', said('enrolment_port_refused', { address: place.address }));
    }
  }

  #heard(entry: Entry, report: Omit<StepReport, 'v' | 'detail'>, detail: Said | null, from: string): void {
    const { enrolment } = entry;
    if (enrolment.heard(report, detail) && entry.failuresTold < MOST_FAILURES_TOLD) {
      entry.failuresTold += 1;
      const failed = said('enrolment_failed', { address: from });
      this.#tell('warn', detail === null ? failed : together(failed, detail));
    }
    this.#look(entry);
  }

  async #join(entry: Entry, { port, joinCode, fingerprint }: JoinReport, from: string): Promise<JoinAnswer> {
    const { enrolment } = entry;
    const address = formatAddress({ host: from, port });
    this.#heard(entry, { code: 'join', state: 'running', percent: null }, null, from);
    try {
      const node = await this.#options.add(address, joinCode, fingerprint);
      enrolment.joined(node);
      const { baseWeight } = enrolment.wish;
      this.#options.weigh(node, address, baseWeight);
      this.#tell('info', said('enrolment_joined', { name: address, weight: baseWeight }), node);
      return { state: 'joined' };
    } catch (error) {
      const known = error instanceof SwitchyardError ? error : new SwitchyardError('internal_error');
      this.#heard(entry, { code: 'join', state: 'failed', percent: null }, saidOf(known), from);
      return { state: 'failed', code: known.code };
    }
  }

  /** Ends it when its time is over, and looks again when that will be. */
  #look(entry: Entry): void {
    const { enrolment } = entry;
    entry.cancelTimer();
    if (this.#entries.get(enrolment.id) !== entry || this.#stopped || entry.joining !== null) return;
    if (enrolment.leftMs > 0 && !enrolment.over) {
      // By the minute: while this computer sleeps its timers do not run on.
      entry.cancelTimer = this.#options.clock.after(Math.min(enrolment.leftMs, 60_000), () => this.#look(entry));
      return;
    }
    this.#close(entry);
    if (enrolment.expire()) this.#tell('warn', said('enrolment_expired'));
  }

  #close(entry: Entry): void {
    entry.cancelTimer();
    entry.listener.close();
  }

  #forgetOld(): void {
    const over = [...this.#entries.values()].filter(({ enrolment }) => enrolment.over);
    for (const { enrolment } of over.slice(0, Math.max(0, over.length - MOST_KEPT))) this.#entries.delete(enrolment.id);
  }

  #tell(severity: 'info' | 'warn', says: Said, node?: NodeId): void {
    this.#options.events.record({ severity, source: 'fleet', says, ...(node === undefined ? {} : { node }) });
  }
}

function viewOf(enrolment: Enrolment): EnrolmentView {
  const { id, wish, state, node, createdAtMs, expiresAtMs, steps } = enrolment;
  return {
    id,
    nodeId: node,
    ...wish,
    state,
    createdAtMs,
    expiresAtMs,
    steps: steps.map((step) => ({ ...step, sentence: stepSentence(step.code).sentence })),
  };
}
