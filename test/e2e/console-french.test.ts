import { afterAll, beforeAll, expect, it } from 'vitest';
import { said, together } from '../../main/domain/said.ts';
import { PAGE_IDS } from '../../preload/contract.ts';
import { CATALOGUE } from '../../renderer/i18n/catalogue.ts';
import * as data from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, startConsoleRig } from '../support/console-page.ts';
import { emptyTopics, fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

const PLACES = [...PAGE_IDS, 'welcome', 'fleet/n3', 'roles/code-assistant', 'gate/v3', 'requests/req_ffd'];
const SETTINGS = { ...data.SETTINGS, console: { ...data.SETTINGS.console, language: 'fr' as const } };

/** What a control plane whose key lies beside its data says of itself. */
const APP = {
  ...data.APP,
  encryption: { source: 'key-file' as const, version: 1, note: said('vault_key_file') },
};
/** As a control plane before codes stored it: nobody can say it anew. */
const STORED_BEFORE = 'attic: the connection of old was cut.';
const EVENTS = [
  ...data.EVENTS,
  {
    ...(data.EVENTS[0] as (typeof data.EVENTS)[number]),
    id: 'ev9',
    atMs: data.NOW,
    says: undefined,
    sentence: STORED_BEFORE,
  },
];
const TEST = {
  requestId: 'req_test',
  ok: false,
  error: together(said('machine_says', { name: 'attic' }), said('hindered_engine')),
  providerName: null,
  model: null,
  measure: null,
  totalMs: 12,
};

describeWithChromium('the console in French', () => {
  let rig: ConsoleRig;
  let open: ConsolePage | null = null;
  beforeAll(async () => {
    rig = await startConsoleRig();
  });
  afterAll(async () => {
    await rig?.close();
  });
  const topics = {
    ...fullTopics(),
    app: { topic: 'app', type: 'value', value: APP },
    events: { topic: 'events', type: 'snapshot', rows: EVENTS },
    settings: { topic: 'settings', type: 'value', value: SETTINGS },
  } as const;
  const script = fullScript({ 'settings.get': () => SETTINGS, 'app.info': () => APP, 'test.request': () => TEST });
  const show = async (options: Partial<Parameters<typeof openConsole>[1]> = {}) => {
    await open?.close();
    open = await openConsole(rig, { script, topics, nowMs: data.NOW, ...options });
    await open.page.getByRole('heading', { name: 'Vue d’ensemble' }).waitFor();
    return open;
  };
  const go = async (shown: ConsolePage, place: string) => {
    await shown.page.evaluate((hash) => {
      location.hash = hash;
    }, `#/${place}`);
    await shown.page.locator('.skeleton').first().waitFor({ state: 'detached' });
  };
  /** All that is read on the page, by eye or by ear. */
  const words = async (shown: ConsolePage) =>
    (
      await shown.page.evaluate(() => [
        document.title,
        document.body.textContent ?? '',
        ...[...document.querySelectorAll('[title],[aria-label],[placeholder]')].flatMap((one) =>
          ['title', 'aria-label', 'placeholder'].map((name) => one.getAttribute(name) ?? ''),
        ),
      ])
    )
      .join('\n')
      .replace(/\s+/g, ' ');

  it('says on every page nothing in English that the control plane or the console says', async () => {
    const shown = await show();
    const english = [...sentencesOf([topics, ...(await answers())]), ...consoleWords()];
    expect(english.length).toBeGreaterThan(250);
    for (const place of PLACES) {
      await go(shown, place);
      const read = await words(shown);
      expect(
        english.filter((sentence) => read.includes(sentence)),
        place,
      ).toEqual([]);
      // A figure in an English unit.
      expect(read.match(/\d (?:B|kB|MB|GB|d)\b/g), place).toBeNull();
    }
    expect(shown.complaints).toEqual([]);
  });

  it.each([
    ['overview', 'Qwen3-Embedding-4B sur mac-studio ne reçoit aucun texte'],
    ['overview', 'Le crédit est épuisé. Ajoutez du crédit chez OpenRouter, puis reprenez le cloud.'],
    ['budget', '11 permis sur 16 : la clé peut encore dépenser 412,00 $. En hausse ; prochain permis à 21:58:09.'],
    ['events', 'OpenRouter a limité le compte : de 16 permis à 8.'],
    ['events', 'Ses vecteurs s’accordent avec ceux de l’espace : plus petit cosinus 0,9994.'],
    ['events', STORED_BEFORE],
    ['keys', 'Cet agent ne tient pas de clé, par exemple après un redémarrage. Saisissez-la de nouveau.'],
    ['settings', 'Le coffre est scellé par un fichier de clé placé à côté de la base de données'],
    ['settings', '48 Mo'],
    ['requests/req_ffd', 'qwen3-coder:30b sur lab-box'],
    ['requests/req_ffd', 'Sa machine est injoignable.'],
    [
      'requests/req_ffd',
      'qwen3-embedding:4b sur attic : contrôle réussi, 29 nov. 2026, 21:57:00, avant d’être utilisé.',
    ],
    ['roles', 'Local d’abord ; vers le cloud si l’attente devait dépasser 3 s.'],
    ['gate/v3', 'Ses vecteurs ne sont pas ceux de l’espace : plus petit cosinus 0,9761, sonde « en-caps ».'],
  ])('says on %s: %s', async (place, sentence) => {
    const shown = open ?? (await show());
    await go(shown, place);
    await expect.poll(() => words(shown)).toContain(sentence);
  });

  it('finds an event by the words that are shown', async () => {
    const shown = open ?? (await show());
    await go(shown, 'events');
    const search = shown.page.getByLabel('Chercher dans les événements');
    await search.fill('limité le compte');
    await shown.page.getByText('80 événements sur 401').waitFor();
    await search.fill('limited the account');
    await shown.page.getByText('0 événements sur 401').waitFor();
  });

  it('says a failed test of the welcome page', async () => {
    const shown = await show({
      topics: { ...topics, ...emptyTopics(), roles: { topic: 'roles', type: 'snapshot', rows: data.ROLES } },
    });
    await go(shown, 'welcome');
    await shown.page.getByRole('button', { name: 'Envoyer une requête d’essai' }).click();
    await shown.page.getByText('attic : son moteur ne répond pas.').waitFor();
  });

  async function answers(): Promise<unknown[]> {
    return await Promise.all(Object.values(script).map((play) => play({ range: '1h', providerId: 'v3' })));
  }
});

/** The English of everything that stands beside a code: each sentence, and each part of one. */
function sentencesOf(value: unknown): ReadonlySet<string> {
  const found = new Set<string>();
  const walk = (each: unknown): void => {
    if (Array.isArray(each)) each.forEach(walk);
    else if (typeof each === 'object' && each !== null) {
      const { sentence, says, code, title, titleSays } = each as Readonly<Record<string, unknown>>;
      if (typeof sentence === 'string' && (says !== undefined || code !== undefined)) found.add(sentence);
      if (typeof title === 'string' && titleSays !== undefined) found.add(title);
      Object.values(each).forEach(walk);
    }
  };
  walk(value);
  found.delete(STORED_BEFORE);
  return found;
}

/** Entries of the console itself that cannot be taken for a name: two words at least, other ones in French, and no key's name. */
function consoleWords(): readonly string[] {
  return Object.values(CATALOGUE)
    .filter(({ en, fr }) => en !== fr && /^[^{}]*\w \w[^{}]*$/.test(en) && en.length > 9)
    .map(({ en }) => en as string)
    .filter((en) => !data.KEYS.some(({ name }) => name === en));
}
