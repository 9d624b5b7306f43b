import type { ReactElement } from 'react';
import { PAGE_IDS } from '../../preload/contract/names.ts';
import type { PageId } from '../../preload/contract.ts';
import { CopyButton } from '../components/controls.tsx';
import { PageIcon } from '../components/icons.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useTopic } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';
import { useNavigation } from './place.tsx';

/** The pages, what each has to say in one number, and the address that tools use. */
export function Rail(): ReactElement {
  const { t } = useI18n();
  const { place } = useNavigation();
  const app = useTopic('app');
  const counts = usePageCounts();
  return (
    <nav className="rail" aria-label={t('nav.label')}>
      <h1>Switchyard</h1>
      {PAGE_IDS.map((page) => {
        const count = counts[page];
        return (
          <a
            key={page}
            href={placeHash(page)}
            title={t(`page.${page}`)}
            {...(place.page === page ? { 'aria-current': 'page' as const } : {})}
          >
            <PageIcon page={page} />
            <span className="word">{t(`page.${page}`)}</span>
            {count && (
              <span className={count.warn ? 'count warn' : 'count'} title={count.words}>
                {count.value}
                <span className="visually-hidden"> {count.words}</span>
              </span>
            )}
          </a>
        );
      })}
      {app?.endpoint && (
        <footer>
          <small>{t('nav.endpoint')}</small>
          <div className="address">
            <code>{app.endpoint.replace(/^https?:\/\//, '')}</code>
            <CopyButton text={`${app.endpoint}/v1`} label={t('nav.copyEndpoint')} />
          </div>
        </footer>
      )}
    </nav>
  );
}

interface PageCount {
  readonly value: string;
  readonly words: string;
  readonly warn: boolean;
}

function usePageCounts(): Partial<Record<PageId, PageCount>> {
  const { t, f } = useI18n();
  const nodes = useTopic('nodes');
  const gate = useTopic('gate');
  const health = useTopic('health') ?? [];
  const counts: Partial<Record<PageId, PageCount>> = {};
  if (nodes)
    counts.fleet = {
      value: f.number(nodes.length),
      words: t(nodes.length === 1 ? 'nav.machine' : 'nav.machines'),
      warn: false,
    };
  const refused = (gate ?? []).filter((row) => isRefusal(row.verdict)).length;
  if (refused > 0)
    counts.gate = { value: f.number(refused), words: t(refused === 1 ? 'nav.refusedOne' : 'nav.refused'), warn: true };
  for (const page of ['keys', 'budget', 'settings'] as const) {
    const needs = health.filter((item) => item.page === page && item.needsPerson).length;
    if (needs > 0)
      counts[page] = { value: f.number(needs), words: t(needs === 1 ? 'nav.needsOne' : 'nav.needs'), warn: true };
  }
  return counts;
}

/** Verdicts that keep a provider from work; one that is still being made is none. */
export function isRefusal(verdict: string): boolean {
  return !['pass', 'pass-reduced', 'unverified'].includes(verdict);
}
