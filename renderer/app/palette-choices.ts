import { useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { PAGE_IDS } from '../../preload/contract/names.ts';
import type { Input } from '../../preload/contract.ts';
import { copyText } from '../components/clipboard.ts';
import { CATALOGUE, type MessageKey } from '../i18n/catalogue.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole, useTopic } from '../state/console.tsx';
import { useNavigation } from './place.tsx';
import { useUi } from './ui.tsx';

export interface Choice {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  /** What it is also found by: the same in the other language. */
  readonly words: string;
  readonly go: () => void;
}

const inAll = (...keys: readonly MessageKey[]): string =>
  keys.map((key) => Object.values(CATALOGUE[key]).join(' ')).join(' ');

/** Those whose every typed word is in their name, in either language. */
export function choicesFor(choices: readonly Choice[], typed: string): readonly Choice[] {
  const wanted = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter((choice) => {
    const hay = `${choice.label} ${choice.words}`.toLowerCase();
    return wanted.every((word) => hay.includes(word));
  });
}

/** Pages, what can be done, machines, roles. */
export function useChoices(): readonly Choice[] {
  const { t } = useI18n();
  const { go } = useNavigation();
  const nodes = useTopic('nodes');
  const roles = useTopic('roles');
  const actions = useActions();
  return useMemo(
    () => [
      ...PAGE_IDS.map((page) => ({
        id: page,
        label: t(`page.${page}`),
        hint: t('palette.page'),
        words: inAll(`page.${page}`),
        go: () => go(page),
      })),
      {
        id: 'welcome',
        label: t('welcome.title'),
        hint: t('palette.page'),
        words: inAll('welcome.title'),
        go: () => go('welcome'),
      },
      ...actions,
      ...(nodes ?? []).map((node) => ({
        id: `node ${node.id}`,
        label: node.name,
        hint: node.address ?? t('palette.machine'),
        words: inAll('palette.machine'),
        go: () => go('fleet', node.id),
      })),
      ...(roles ?? []).map((role) => ({
        id: `role ${role.id}`,
        label: role.id,
        hint: t('palette.role'),
        words: inAll('palette.role'),
        go: () => go('roles', role.id),
      })),
    ],
    [t, go, nodes, roles, actions],
  );
}

const THEMES = ['system', 'light', 'dark'] as const;
const LANGUAGES = [
  { value: 'system', name: null },
  { value: 'en', name: 'English' },
  { value: 'fr', name: 'Français' },
] as const;

/** Each does what its control does: what asks there asks here, and what is not there to be done is not offered. */
function useActions(): readonly Choice[] {
  const { t, sayError } = useI18n();
  const { go } = useNavigation();
  const { transport } = useConsole();
  const queries = useQueryClient();
  const ui = useUi();
  const app = useTopic('app');
  const cloud = useTopic('cloud');
  const roles = useTopic('roles');
  const verdicts = useTopic('gate');
  return useMemo(() => {
    const action = (id: string, label: string, words: string, act: () => void): Choice => {
      return { id: `do ${id}`, label, hint: t('palette.action'), words, go: act };
    };
    const named = (id: string, key: MessageKey, act: () => void) => action(id, t(key), inAll(key), act);
    const told = (asked: Promise<unknown>, done: () => void) =>
      void asked.then(done, (error: unknown) => ui.setState({ failure: error, announcement: sayError(error) }));
    const set = (input: Input<'settings.set'>) =>
      told(transport.call('settings.set', input), () => {
        ui.announce(t('action.saved'));
        void queries.invalidateQueries({ queryKey: ['settings.get'] });
      });
    const found: Choice[] = [];
    if (cloud) found.push(named('cloud', cloud.paused ? 'cloud.resume' : 'cloud.pause', () => ui.ask('cloud')));
    const openPage = (page: 'fleet' | 'keys' | 'gate', what: string) => () => {
      ui.ask(what);
      go(page);
    };
    found.push(named('machine', 'fleet.add', openPage('fleet', 'add-machine')));
    found.push(named('key', 'keys.new', openPage('keys', 'new-key')));
    if (verdicts && verdicts.length > 0) {
      const verify = () => {
        go('gate');
        told(transport.call('gate.verify', {}), () => void queries.invalidateQueries({ queryKey: ['gate.list'] }));
      };
      found.push(named('verify', 'gate.verifyAll', verify));
    }
    for (const role of roles ?? []) {
      // As the Gate's own button: for a role that has none, once somebody could found it.
      if (role.task !== 'embed' || role.space || !verdicts?.some((row) => row.role === role.id)) continue;
      const label = t('palette.of', { what: t('gate.found'), value: role.id });
      found.push(action(`found ${role.id}`, label, inAll('gate.found'), openPage('gate', `found ${role.id}`)));
    }
    const { endpoint } = app ?? {};
    if (endpoint) {
      const copy = () => ui.announce(copyText(`${endpoint}/v1`) ? t('copy.done') : '');
      found.push(named('copy', 'nav.copyEndpoint', copy));
    }
    for (const theme of THEMES) {
      const label = t('palette.of', { what: t('settings.theme'), value: t(`theme.${theme}`) });
      const words = inAll('settings.theme', `theme.${theme}`);
      found.push(action(`theme ${theme}`, label, words, () => set({ console: { theme } })));
    }
    for (const { value, name } of LANGUAGES) {
      const label = t('palette.of', { what: t('settings.language'), value: name ?? t('theme.system') });
      const words = inAll('settings.language', ...(name ? [] : (['theme.system'] as const)));
      found.push(action(`language ${value}`, label, words, () => set({ console: { language: value } })));
    }
    return found;
  }, [t, sayError, go, transport, queries, ui, app, cloud, roles, verdicts]);
}
