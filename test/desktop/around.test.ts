import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { autostartEntry } from '../../main/desktop/login.ts';
import { Notifier } from '../../main/desktop/notifications.ts';
import { APP_ID } from '../../main/desktop/policy.ts';
import { merge, NOTHING } from '../../main/desktop/standing.ts';
import { trayCanBeSeen } from '../../main/desktop/tray.ts';
import { menuFingerprint, statusLine, trayTemplate } from '../../main/desktop/tray-menu.ts';
import { placeWindow, readWindowState, writeWindowState } from '../../main/desktop/window-state.ts';
import { languageOf } from '../../main/desktop/words.ts';
import { said } from '../../main/domain/said.ts';
import { CLOUD, HEALTH, NODES, ROLES } from '../support/console-data.ts';

const standing = { nodes: NODES, roles: ROLES, health: HEALTH, cloud: CLOUD };
const idle = {
  open: () => undefined,
  setPolicy: () => undefined,
  setPaused: () => undefined,
  openAlert: () => undefined,
  quit: () => undefined,
};

describe('the tray', () => {
  it('says in words how things stand', () => {
    // ready: workstation, workstation-2, this machine; degraded serves too; lab-box is unreachable
    expect(statusLine(standing, 'en')).toBe('Serving: 4 of 5 machines ready. 3 need attention');
    expect(statusLine({ ...standing, nodes: [], health: [] }, 'en')).toBe('No machine is ready');
    expect(statusLine(null, 'fr')).toBe('Switchyard démarre');
  });

  it('has the five roles, each with its four policies of which one is on', () => {
    const roles = trayTemplate(standing, 'en', idle).filter((item) => Array.isArray(item.submenu));
    expect(roles.map((item) => item.label)).toEqual(ROLES.map((role) => role.id));
    for (const item of roles) {
      const policies = item.submenu as { type: string; checked: boolean }[];
      expect(policies.map((policy) => policy.type)).toEqual(['radio', 'radio', 'radio', 'radio']);
      expect(policies.filter((policy) => policy.checked)).toHaveLength(1);
    }
  });

  it('changes a policy and pauses the cloud', () => {
    const done: unknown[] = [];
    const template = trayTemplate(standing, 'en', {
      ...idle,
      setPolicy: (role, policy) => done.push([role, policy]),
      setPaused: (paused) => done.push(paused),
    });
    const click = (item: unknown) => (item as { click: () => void }).click();
    const submenu = template.find((item) => item.label === 'code-assistant')?.submenu;
    click(Array.isArray(submenu) ? submenu[0] : null);
    click(template.find((item) => item.id === 'pause'));
    expect(done).toEqual([['code-assistant', 'local'], true]);
  });

  it('is rebuilt only when it would look different', () => {
    const drawn = () => menuFingerprint(trayTemplate(standing, 'en', idle));
    expect(drawn()).toBe(drawn());
    expect(menuFingerprint(trayTemplate({ ...standing, cloud: { ...CLOUD, paused: true } }, 'en', idle))).not.toBe(
      drawn(),
    );
  });

  it('cannot be seen under GNOME', () => {
    expect(trayCanBeSeen('linux', 'ubuntu:GNOME')).toBe(false);
    expect(trayCanBeSeen('linux', 'KDE')).toBe(true);
    expect(trayCanBeSeen('darwin', undefined)).toBe(true);
  });
});

describe('notifications', () => {
  it('tell once of what begins to need a person, and not of what was there at the start', () => {
    const shown: string[] = [];
    const notifier = new Notifier({
      show: (title) => shown.push(title),
      open: () => undefined,
      language: () => 'en',
      wallMs: () => 0,
    });
    const [first, second, third] = HEALTH;
    if (!first || !second || !third) throw new Error('no health items');
    notifier.update([first]);
    notifier.update([first, second]);
    notifier.update([first, second]);
    notifier.update([first, second, { ...third, needsPerson: false }]);
    notifier.setEnabled(false);
    notifier.update([first, second, third]);
    expect(shown).toEqual(['Key missing on workstation-2']);
  });

  it('are not made of what began before the start and shows only when its machine has answered', () => {
    const shown: string[] = [];
    const notifier = new Notifier({
      show: (title) => shown.push(title),
      open: () => undefined,
      language: () => 'en',
      wallMs: () => 1000,
    });
    const [first] = HEALTH;
    if (!first) throw new Error('no health items');
    notifier.update([]);
    notifier.update([
      { ...first, id: 'old', title: 'old', sinceMs: 999 },
      { ...first, id: 'new', title: 'new', sinceMs: 1000 },
    ]);
    expect(shown).toHaveLength(1);
  });

  it('speak the language chosen at that moment, and so does the last alert in the tray', () => {
    const shown: string[] = [];
    let language: 'en' | 'fr' = 'en';
    const ports = { open: () => undefined, language: () => language, wallMs: () => 0 };
    const notifier = new Notifier({ ...ports, show: (title, body) => shown.push(`${title} | ${body}`) });
    const [first] = HEALTH;
    if (!first) throw new Error('no health items');
    const { sentence: title, ...titleSays } = said('title_cloud_key_missing', { name: 'attic' });
    const { sentence, ...says } = said('cloud_key_missing');
    const missing = { ...first, id: 'missing', title, titleSays, sentence, says };
    notifier.update([]);
    notifier.update([missing]);
    language = 'fr';
    notifier.update([]);
    notifier.update([missing]);
    expect(shown).toEqual([
      'Key missing on attic | This agent holds no key, for example after a restart. Enter the key again.',
      'Clé absente sur attic | Cet agent ne tient pas de clé, par exemple après un redémarrage. Saisissez-la de nouveau.',
    ]);
    const alert = trayTemplate({ ...standing, health: [missing] }, 'fr', idle).find(({ id }) => id === 'alert');
    expect(alert?.label).toBe('Clé absente sur attic');
  });
});

describe('the window', () => {
  const screen = { x: 0, y: 0, width: 1920, height: 1080 };

  it('opens where it was left, unless that screen is gone', () => {
    const left = { x: 2000, y: 40, width: 1000, height: 700, maximized: true };
    expect(placeWindow(left, [screen, { x: 1920, y: 0, width: 1920, height: 1080 }])).toEqual(left);
    // 1280 x 800 in the middle of 1920 x 1080
    expect(placeWindow(left, [screen])).toEqual({ x: 320, y: 140, width: 1280, height: 800, maximized: false });
  });

  it('keeps its title bar within reach and its least size', () => {
    expect(placeWindow({ x: 10, y: -400, width: 900, height: 700, maximized: false }, [screen]).y).toBe(140);
    expect(placeWindow({ x: 10, y: 10, width: 100, height: 100, maximized: false }, [screen])).toMatchObject({
      width: 640,
      height: 480,
    });
  });

  it('forgets its place when the file is damaged', async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'switchyard-window-')), 'window.json');
    expect(readWindowState(file)).toBeNull();
    writeFileSync(file, '{"x": "left"}');
    expect(readWindowState(file)).toBeNull();
    const state = { x: 1, y: 2, width: 900, height: 700, maximized: false };
    await writeWindowState(file, state);
    expect(readWindowState(file)).toEqual(state);
  });
});

it('the login entry keeps a path with spaces and dollars one word', () => {
  expect(autostartEntry('/opt/My $Apps/switchyard')).toContain('Exec="/opt/My \\$Apps/switchyard" --hidden');
});

it('the standing follows snapshots and deltas', () => {
  const [first, second] = HEALTH;
  if (!first || !second) throw new Error('no health items');
  let now = merge(NOTHING, { topic: 'health', type: 'snapshot', rows: [first] });
  now = merge(now, { topic: 'health', type: 'delta', changed: [second], removed: [first.id] });
  expect(now.health).toEqual([second]);
});

it('the language is the chosen one, else the system’s', () => {
  expect(languageOf('system', 'fr-CA')).toBe('fr');
  expect(languageOf('system', 'de')).toBe('en');
  expect(languageOf('en', 'fr')).toBe('en');
});

it('the id that Windows knows the app by is the installers’', () => {
  const config = readFileSync(new URL('../../electron-builder.yml', import.meta.url), 'utf8');
  expect(config).toContain(`\nappId: ${APP_ID}\n`);
});
