import type { ReactElement } from 'react';
import type { HealthView } from '../../preload/contract.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { placeHash } from '../state/ui-store.ts';

/** What a person has to do, each with its one action. */
export function NeedsYou({ health }: { readonly health: readonly HealthView[] }): ReactElement {
  const { t } = useI18n();
  const needs = health.filter((item) => item.needsPerson);
  return (
    <section>
      <h3>{t('overview.needsYou')}</h3>
      {needs.length === 0 ? <p className="quiet">{t('overview.needsNothing')}</p> : <Items items={needs} />}
    </section>
  );
}

/** What is wrong too, and heals by itself or can wait. */
export function CanWait({ health }: { readonly health: readonly HealthView[] }): ReactElement | null {
  const { t } = useI18n();
  const others = health.filter((item) => !item.needsPerson);
  if (others.length === 0) return null;
  return (
    <section>
      <h3>{t('overview.canWait')}</h3>
      <Items items={others} />
    </section>
  );
}

function Items({ items }: { readonly items: readonly HealthView[] }): ReactElement {
  const { t, sayBeside } = useI18n();
  return (
    <ol className="needs">
      {items.map((item) => (
        <li key={item.id} className={item.severity}>
          <b>{sayBeside(item.title, item.titleSays)}</b>
          <p>{sayBeside(item.sentence, item.says)}</p>
          <a href={placeHash(item.page, item.target)}>{t(`go.${item.action}`, { page: t(`page.${item.page}`) })}</a>
        </li>
      ))}
    </ol>
  );
}
