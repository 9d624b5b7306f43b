import { type ReactElement, useEffect, useRef } from 'react';
import { useStore } from 'zustand';
import type { PageId, SettingsView } from '../../preload/contract.ts';
import { focusPage } from '../components/focus-place.ts';
import { I18nProvider, type Language, useI18n } from '../i18n/i18n.tsx';
import { BudgetPage } from '../pages/budget.tsx';
import { EventsPage } from '../pages/events.tsx';
import { FleetPage } from '../pages/fleet.tsx';
import { GatePage } from '../pages/gate.tsx';
import { KeysPage } from '../pages/keys.tsx';
import { OverviewPage, RangeTools } from '../pages/overview.tsx';
import { RequestsPage } from '../pages/requests.tsx';
import { RolesPage } from '../pages/roles.tsx';
import { SettingsPage } from '../pages/settings.tsx';
import { WelcomePage } from '../pages/welcome.tsx';
import { useConnection, useConsole, useSettings, useTopic } from '../state/console.tsx';
import type { UiStore } from '../state/ui-store.ts';
import { FailureSheet, HelpSheet, Palette } from './dialogs.tsx';
import { NavigationContext, usePlace } from './place.tsx';
import { Rail } from './rail.tsx';
import { SignIn } from './sign-in.tsx';
import { TopBar } from './top-bar.tsx';
import { UiContext, useUi } from './ui.tsx';
import { focusFilter, useShortcuts } from './use-shortcuts.ts';

const PAGES: Readonly<Record<PageId | 'welcome', () => ReactElement>> = {
  overview: OverviewPage,
  fleet: FleetPage,
  roles: RolesPage,
  gate: GatePage,
  budget: BudgetPage,
  requests: RequestsPage,
  keys: KeysPage,
  events: EventsPage,
  settings: SettingsPage,
  welcome: WelcomePage,
};

/** The console, or while nobody is signed in the one page that says so: no panel behind it asks and fails. */
export function App({ ui }: { readonly ui: UiStore }): ReactElement {
  const connection = useConnection();
  const { transport } = useConsole();
  if (connection === 'ended' && transport.signIn) {
    return (
      <I18nProvider language={resolveLanguage('system', navigator.language)}>
        <SignIn />
      </I18nProvider>
    );
  }
  return <SignedIn ui={ui} />;
}

/** Language and theme come from the settings; until they are known, from the system. */
function SignedIn({ ui }: { readonly ui: UiStore }): ReactElement {
  const settings = useSettings();
  const chosen = settings.data?.console;
  const language = resolveLanguage(chosen?.language ?? 'system', navigator.language);
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  useEffect(() => {
    const theme = chosen?.theme ?? 'system';
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [chosen?.theme]);
  return (
    <UiContext value={ui}>
      <I18nProvider language={language}>
        <Frame settings={settings.data ?? null} />
      </I18nProvider>
    </UiContext>
  );
}

export function resolveLanguage(chosen: 'system' | Language, system: string): Language {
  if (chosen !== 'system') return chosen;
  return system.toLowerCase().startsWith('fr') ? 'fr' : 'en';
}

function Frame({ settings }: { readonly settings: SettingsView | null }): ReactElement {
  const { t } = useI18n();
  const { transport } = useConsole();
  const navigation = usePlace();
  const { place, go } = navigation;
  const ui = useUi();
  const { helpOpen, paletteOpen, failure } = useStore(ui);
  const page = useRef<HTMLElement>(null);

  useEffect(() => transport.onShow((to, target) => go(to, target)), [transport, go]);
  useEffect(() => {
    if (settings && !settings.console.firstRunDone && window.location.hash === '') go('welcome');
  }, [settings, go]);
  const shownPage = useRef(place.page);
  useEffect(() => {
    // What had the keyboard went with the page before: it goes on from the top of this one.
    if (shownPage.current !== place.page && document.activeElement === document.body) focusPage();
    shownPage.current = place.page;
  }, [place.page]);
  useEffect(() => {
    page.current?.scrollTo({ top: 0 });
    document.title = `${t(place.page === 'welcome' ? 'welcome.title' : `page.${place.page}`)} · Switchyard`;
  }, [place.page, t]);
  useShortcuts(settings?.console.singleKeys ?? true, (action) => {
    if (action.do === 'go') go(action.page);
    else if (action.do === 'filter') focusFilter();
    else if (action.do === 'help') ui.setState({ helpOpen: true });
    else ui.setState({ asked: null, paletteOpen: !ui.getState().paletteOpen });
  });

  const Page = PAGES[place.page];
  const title = t(place.page === 'welcome' ? 'welcome.title' : `page.${place.page}`);
  return (
    <NavigationContext value={navigation}>
      <div className="app">
        <Rail />
        <div className="content">
          <TopBar
            title={title}
            tools={place.page === 'overview' ? <RangeTools /> : undefined}
            onPalette={() => ui.setState({ paletteOpen: true })}
          />
          <Banner />
          <main className="page" ref={page} tabIndex={-1} aria-label={title} key={place.page}>
            <Page />
          </main>
        </div>
        <StatusLine />
        {helpOpen && <HelpSheet onClose={() => ui.setState({ helpOpen: false })} />}
        {paletteOpen && <Palette onClose={() => ui.setState({ paletteOpen: false })} />}
        {failure !== null && <FailureSheet error={failure} onClose={() => ui.setState({ failure: null })} />}
      </div>
    </NavigationContext>
  );
}

/** What must stay visible until it is over. */
function Banner(): ReactElement | null {
  const { t, say } = useI18n();
  const connection = useConnection();
  const app = useTopic('app');
  if (connection === 'lost') return <div className="banner">{t('banner.lost')}</div>;
  if (app?.endpointNote) return <div className="banner">{say(app.endpointNote)}</div>;
  if (app && app.store !== 'ready') return <div className="banner">{t('banner.store')}</div>;
  return null;
}

/** The one polite live region: results of actions and how many things need a person, never a busy list. */
function StatusLine(): ReactElement {
  const { t, f } = useI18n();
  const announcement = useStore(useUi(), (state) => state.announcement);
  const health = useTopic('health');
  const needs = (health ?? []).filter((item) => item.needsPerson).length;
  const summary = needs === 0 ? '' : t(needs === 1 ? 'top.needsOne' : 'top.needs', { count: f.number(needs) });
  return (
    <p className="visually-hidden" role="status">
      {announcement} {summary}
    </p>
  );
}
