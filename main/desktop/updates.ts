import type { Clock, Random } from '../domain/time.ts';

/** What a copy can do about a newer version: say so, or fetch it and put it in its own place. */
export type UpdateMode = 'notify' | 'install';

/** How this copy came to be, read once at the start. */
export interface UpdateFacts {
  /** Of this copy. */
  readonly version: string;
  readonly platform: NodeJS.Platform;
  /** False when it runs from a checkout. */
  readonly packaged: boolean;
  /** Address to ask, from the package (`app-update.yml`); null where it was built without one. */
  readonly feedUrl: string | null;
  /**
   * The operating system vouches for who made this copy and will check the next one against the same name: a publisher written
   * into the package (Windows), a signature with a team (macOS). AppImage and deb carry none that an updater would check.
   */
  readonly signed: boolean;
}

/** The part of electron-updater's `AppUpdater` that is used; tests hand in their own. */
export interface Updater {
  autoDownload: boolean;
  autoInstallOnAppQuit: boolean;
  allowDowngrade: boolean;
  allowPrerelease: boolean;
  logger: unknown;
  checkForUpdates(): Promise<{ readonly updateInfo: { readonly version: string } } | null>;
  /** Rejects when the signature is wrong, too. */
  downloadUpdate(): Promise<unknown>;
  quitAndInstall(isSilent?: boolean, isForceRunAfter?: boolean): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

export type UpdateState =
  /** Nothing is ever asked: from a checkout, or built without an address. */
  | { readonly state: 'unavailable'; readonly reason: 'development' | 'no-feed' }
  | { readonly state: 'idle'; readonly checkedAtMs: number | null }
  | { readonly state: 'checking' }
  /** A person fetches it: this copy has no signature that could be checked. */
  | { readonly state: 'available'; readonly version: string; readonly feedUrl: string }
  | { readonly state: 'downloading'; readonly version: string }
  /** Put in place when the app quits, or by `restart()`. */
  | { readonly state: 'ready'; readonly version: string }
  | { readonly state: 'failed'; readonly step: 'check' | 'download'; readonly version: string | null };

export interface UpdatesOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly facts: UpdateFacts;
  /** Asked for once, on the first check: it is large and most starts do not need it. */
  readonly loadUpdater: () => Promise<Updater>;
  /** Whether checks happen by themselves; a person may always ask. */
  readonly automatic: boolean;
  /** Ends running work in order before the app is replaced. */
  readonly drain: () => Promise<void>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Copies whose package no updater could verify are only told of. */
export function updateMode({ platform, signed }: UpdateFacts): UpdateMode {
  return signed && (platform === 'darwin' || platform === 'win32') ? 'install' : 'notify';
}

/**
 * Whether `offered` is a release newer than `current`. Pre-releases and whatever is no version are never newer: the text comes
 * from the network.
 */
export function isNewer(offered: string, current: string): boolean {
  const [next, own] = [offered, current].map((text) =>
    /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.-]+)?$/.exec(text),
  );
  if (!next || !own || next[4] !== undefined) return false;
  for (const part of [1, 2, 3]) {
    const difference = Number(next[part]) - Number(own[part]);
    if (difference !== 0) return difference > 0;
  }
  return own[4] !== undefined; // 1.2.0 is newer than 1.2.0-rc.1
}

/** Looks for newer versions and, where the system can tell a true one from a false one, fetches them. */
export class Updates {
  readonly #options: UpdatesOptions;
  readonly #listeners = new Set<(state: UpdateState) => void>();
  #automatic: boolean;
  #state: UpdateState;
  #updater: Promise<Updater> | null = null;
  #running: Promise<void> | null = null;
  #cancelTimer: () => void = () => undefined;
  #failures = 0;
  #started = false;

  constructor(options: UpdatesOptions) {
    this.#options = options;
    this.#automatic = options.automatic;
    const { packaged, feedUrl } = options.facts;
    if (!packaged) this.#state = { state: 'unavailable', reason: 'development' };
    else if (feedUrl === null) this.#state = { state: 'unavailable', reason: 'no-feed' };
    else this.#state = { state: 'idle', checkedAtMs: null };
  }

  /** The first check comes one to two minutes later: a start has better things to do, and not all copies ask at once. */
  start(): void {
    this.#started = true;
    this.#schedule((1 + this.#options.random()) * MINUTE_MS);
  }

  stop(): void {
    this.#started = false;
    this.#cancelTimer();
  }

  get state(): UpdateState {
    return this.#state;
  }

  /** @returns its own unsubscribe. */
  subscribe(listener: (state: UpdateState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The operator's setting. */
  setAutomatic(automatic: boolean): void {
    if (automatic === this.#automatic) return;
    this.#automatic = automatic;
    this.#cancelTimer();
    if (automatic) this.#schedule((1 + this.#options.random()) * MINUTE_MS);
  }

  /** Looks now, or joins a look under way. Never rejects: `state` says how it ended. */
  check(): Promise<void> {
    if (this.#state.state === 'unavailable' || this.#state.state === 'ready') return Promise.resolve();
    this.#running ??= this.#check().finally(() => {
      this.#running = null;
      this.#schedule(this.#nextMs());
    });
    return this.#running;
  }

  /** Replaces the app and starts it again. @returns false when nothing is ready. */
  async restart(): Promise<boolean> {
    if (this.#state.state !== 'ready' || this.#updater === null) return false;
    const updater = await this.#updater;
    await this.#options.drain();
    updater.quitAndInstall(false, true);
    return true;
  }

  async #check(): Promise<void> {
    const { clock, facts } = this.#options;
    let version: string | null = null;
    this.#become({ state: 'checking' });
    try {
      this.#updater ??= this.#prepare();
      const updater = await this.#updater;
      const offered = (await updater.checkForUpdates())?.updateInfo.version;
      if (offered === undefined || !isNewer(offered, facts.version)) {
        this.#failures = 0;
        this.#become({ state: 'idle', checkedAtMs: clock.wallMs() });
        return;
      }
      version = offered;
      if (updateMode(facts) === 'install') {
        this.#become({ state: 'downloading', version });
        await updater.downloadUpdate();
        this.#become({ state: 'ready', version });
      } else {
        this.#become({ state: 'available', version, feedUrl: facts.feedUrl ?? '' });
      }
      this.#failures = 0;
    } catch {
      // What it says quotes addresses, paths and answers; the step is enough to act on.
      this.#failures++;
      this.#become({ state: 'failed', step: version === null ? 'check' : 'download', version });
    }
  }

  async #prepare(): Promise<Updater> {
    try {
      const updater = await this.#options.loadUpdater();
      const install = updateMode(this.#options.facts) === 'install';
      updater.autoDownload = false; // only after our own look at the version
      updater.autoInstallOnAppQuit = install;
      updater.allowDowngrade = false;
      updater.allowPrerelease = false;
      updater.logger = null;
      updater.on('error', () => undefined); // the promise says the same; unheard it would end the process
      return updater;
    } catch (error) {
      this.#updater = null;
      throw error;
    }
  }

  /** A day, give or take an hour; after failures one hour, doubling to a day. */
  #nextMs(): number {
    const jitter = 1 + (this.#options.random() - 0.5) / 12;
    return Math.min(DAY_MS, this.#failures === 0 ? DAY_MS : HOUR_MS * 2 ** (this.#failures - 1)) * jitter;
  }

  #schedule(delayMs: number): void {
    this.#cancelTimer();
    if (!this.#started || !this.#automatic || this.#state.state === 'unavailable') return;
    this.#cancelTimer = this.#options.clock.after(delayMs, () => void this.check());
  }

  #become(state: UpdateState): void {
    this.#state = state;
    for (const listener of [...this.#listeners]) listener(state);
  }
}
