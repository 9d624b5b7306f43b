import type { MessageBoxOptions } from 'electron';
import {
  type HealthView,
  type LeavingView,
  OPENROUTER_HOST,
  type Output,
  type SettingsView,
} from '../../preload/contract.ts';
import type { Policy } from '../domain/policy.ts';
import type { ConsoleWindow } from './console-window.ts';
import { Notifier } from './notifications.ts';
import type { DesktopPlane } from './ports.ts';
import { watchStanding } from './standing.ts';
import type { TrayService } from './tray.ts';
import type { TrayActions } from './tray-menu.ts';
import { type Language, languageOf, say, type Word } from './words.ts';

export interface DesktopPorts {
  readonly window: ConsoleWindow;
  readonly makeTray: (act: TrayActions) => TrayService;
  readonly trayCanBeSeen: boolean;
  readonly systemLanguage: string;
  readonly notify: (title: string, body: string, onClick: () => void) => void;
  /** @returns the index of the chosen button. */
  readonly ask: (options: MessageBoxOptions) => Promise<number>;
  readonly setStartAtLogin: (enabled: boolean) => Promise<void>;
  readonly quit: () => void;
}

type Chosen = Pick<SettingsView, 'desktop' | 'notifications' | 'console'>;

/** What the window, the tray and the notifications do together. */
export class Desktop {
  readonly #ports: DesktopPorts;
  readonly #tray: TrayService;
  readonly #notifier: Notifier;
  #hasTray = false;
  #plane: DesktopPlane | null = null;
  readonly #unwatch: (() => void)[] = [];
  #chosen: Chosen | null = null;
  #language: Language;
  #health: readonly HealthView[] = [];
  #toldThatItServes = false;
  #quitting = false;
  #asking = false;

  constructor(ports: DesktopPorts) {
    this.#ports = ports;
    this.#language = languageOf('system', ports.systemLanguage);
    this.#tray = ports.makeTray({
      open: (page, target) => ports.window.open(page, target),
      setPolicy: (role, policy) => void this.#setPolicy(role, policy),
      setPaused: (paused) => void this.#change(paused ? 'cloud.pause' : 'cloud.resume', {}),
      openAlert: (id) => this.#openAlert(id),
      quit: ports.quit,
    });
    this.#notifier = new Notifier({
      show: ports.notify,
      open: (item) => ports.window.open(item.page, item.target),
      language: () => this.#language,
      wallMs: () => Date.now(),
    });
  }

  start(): void {
    this.#hasTray = this.#tray.start() && this.#ports.trayCanBeSeen;
  }

  /** The control plane serves: from now on there is something to show. */
  attach(plane: DesktopPlane): void {
    this.#plane = plane;
    this.#unwatch.push(
      // Whoever changes them, in this window, a browser or a script, the topic tells.
      plane.topics.subscribe(['settings'], (update) => {
        if (update.topic === 'settings') this.#applySettings(update.value);
      }),
      watchStanding(plane, (standing) => {
        this.#health = standing.health;
        this.#tray.update(standing);
        this.#notifier.update(standing.health);
      }),
    );
  }

  stop(): void {
    for (const unwatch of this.#unwatch.splice(0)) unwatch();
    this.#tray.stop();
  }

  #applySettings(chosen: Chosen): void {
    const before = this.#chosen;
    this.#chosen = chosen;
    this.#language = languageOf(chosen.console.language, this.#ports.systemLanguage);
    this.#tray.setLanguage(this.#language);
    this.#notifier.setEnabled(chosen.notifications.enabled);
    if (before?.desktop.startAtLogin === chosen.desktop.startAtLogin) return;
    // The first reading writes nothing: an entry that somebody deleted by hand stays deleted.
    if (before === null) return;
    this.#ports.setStartAtLogin(chosen.desktop.startAtLogin).catch(() => {
      this.#ports.notify(say(this.#language, 'noLoginEntry'), '', () => this.#ports.window.open('settings', null));
    });
  }

  /**
   * The person closed the window. With a tray and the setting, serving goes on and that is said once; without a tray it is asked,
   * because there would be no way back.
   *
   * @returns true when the window may really close.
   */
  mayClose(): boolean {
    if (this.#quitting) return true;
    const stays = this.#hasTray && (this.#chosen?.desktop.closeToTray ?? true);
    if (!stays) {
      void this.#askWhetherToQuit();
      return false;
    }
    this.#ports.window.hide();
    if (!this.#toldThatItServes) {
      this.#toldThatItServes = true;
      this.#ports.notify(say(this.#language, 'stillServing'), say(this.#language, 'stillServingBody'), () =>
        this.#ports.window.open(null, null),
      );
    }
    return false;
  }

  beginQuit(): void {
    this.#quitting = true;
  }

  async #askWhetherToQuit(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      const answer = await this.#ports.ask({
        type: 'question',
        message: say(this.#language, 'closeTitle'),
        detail: say(this.#language, 'closeBody'),
        buttons: [say(this.#language, 'keepServing'), say(this.#language, 'quit'), say(this.#language, 'cancel')],
        defaultId: 0,
        cancelId: 2,
      });
      if (answer === 0) this.#ports.window.hide();
      else if (answer === 1) this.#ports.quit();
    } finally {
      this.#asking = false;
    }
  }

  /** A policy that lets texts out which so far stay in the network is a question first, as on the console's page. */
  async #setPolicy(role: string, policy: Policy): Promise<void> {
    const input = { id: role, patch: { policy } };
    try {
      const preview = (await this.#plane?.call('roles.preview', input)) as Output<'roles.preview'> | undefined;
      if (preview?.leaves && !(await this.#mayLeave(role, policy, preview.leaves))) {
        this.#tray.redraw();
        return;
      }
    } catch {
      this.#refused(role);
      return;
    }
    await this.#change('roles.update', input);
  }

  /** @returns false also while another question stands open. */
  async #mayLeave(role: string, policy: Policy, leaves: LeavingView): Promise<boolean> {
    if (this.#asking) return false;
    this.#asking = true;
    const words = (word: Word, figures: Readonly<Record<string, string>> = {}) => say(this.#language, word, figures);
    const { openRouter, elsewhere } = leaves;
    const whom = [
      ...(openRouter === null
        ? []
        : [words('leavingModel', { hosts: openRouter.hosts.join(', ') || OPENROUTER_HOST, model: openRouter.model })]),
      ...elsewhere,
    ];
    try {
      const answer = await this.#ports.ask({
        type: 'question',
        message: words('leavingTitle', { role }),
        detail: words('leavingBody', {
          role,
          policy: words(policy),
          whom: whom.join(', ') || words('leavingNobody'),
        }),
        buttons: [words('cancel'), words('letLeave')],
        defaultId: 0,
        cancelId: 0,
      });
      return answer === 1;
    } finally {
      this.#asking = false;
    }
  }

  async #change(name: string, input: unknown): Promise<void> {
    try {
      await this.#plane?.call(name, input);
    } catch {
      this.#refused((input as { readonly id?: string }).id ?? null);
    }
  }

  /** A policy that needs a new space is explained where it can be confirmed. */
  #refused(role: string | null): void {
    this.#tray.redraw();
    this.#ports.notify(say(this.#language, 'refused'), role ?? '', () => this.#ports.window.open('roles', role));
    this.#ports.window.open('roles', role);
  }

  #openAlert(id: string): void {
    const item = this.#health.find((one) => one.id === id);
    if (item) this.#ports.window.open(item.page, item.target);
  }
}
