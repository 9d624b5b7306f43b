import type { MenuItemConstructorOptions } from 'electron';
import { POLICIES } from '../../preload/contract.ts';
import type { Policy } from '../domain/policy.ts';
import type { Standing } from './standing.ts';
import { inWords, type Language, say } from './words.ts';

export interface TrayActions {
  open(page: 'overview' | 'roles' | 'budget', target: string | null): void;
  setPolicy(role: string, policy: Policy): void;
  setPaused(paused: boolean): void;
  openAlert(id: string): void;
  quit(): void;
}

/** One line of status in words, for the tool tip and the top of the menu. */
export function statusLine(standing: Standing | null, language: Language): string {
  if (!standing) return say(language, 'starting');
  const ready = standing.nodes.filter((node) => node.state === 'ready' || node.state === 'degraded').length;
  const base = ready === 0 ? say(language, 'nobody') : say(language, 'serving', { ready, all: standing.nodes.length });
  const needs = standing.health.filter((item) => item.needsPerson).length;
  return needs === 0 ? base : `${base}. ${say(language, 'needs', { count: needs })}`;
}

/** Status, the five roles with their policies, pause cloud, the last alert, open, quit. */
export function trayTemplate(
  standing: Standing | null,
  language: Language,
  act: TrayActions,
): MenuItemConstructorOptions[] {
  const alert = standing?.health.filter((item) => item.needsPerson).toSorted((a, b) => b.sinceMs - a.sinceMs)[0];
  const roles: MenuItemConstructorOptions[] = (standing?.roles ?? []).map((role) => ({
    label: role.id,
    submenu: POLICIES.map((policy) => ({
      id: `${role.id}:${policy}`,
      label: say(language, policy),
      type: 'radio' as const,
      checked: role.policy === policy,
      click: () => act.setPolicy(role.id, policy),
    })),
  }));
  return [
    { id: 'status', label: statusLine(standing, language), enabled: false },
    ...(alert ? [{ id: 'alert', label: inWords(alert, language).title, click: () => act.openAlert(alert.id) }] : []),
    { type: 'separator' },
    ...roles,
    ...(roles.length > 0 ? [{ type: 'separator' as const }] : []),
    ...(standing?.cloud
      ? [
          {
            id: 'pause',
            label: say(language, 'pauseCloud'),
            type: 'checkbox' as const,
            checked: standing.cloud.paused,
            click: () => act.setPaused(!standing.cloud?.paused),
          },
        ]
      : []),
    { id: 'open', label: say(language, 'open'), click: () => act.open('overview', null) },
    { id: 'quit', label: say(language, 'quit'), click: () => act.quit() },
  ];
}

/** Two menus with the same fingerprint look the same: the tray is rebuilt only when it would differ. */
export function menuFingerprint(template: readonly MenuItemConstructorOptions[]): string {
  return JSON.stringify(template, (key, value: unknown) => (key === 'click' ? undefined : value));
}
