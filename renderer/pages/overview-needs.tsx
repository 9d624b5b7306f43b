import type { ReactElement } from 'react';
import { useI18n } from '../i18n/i18n.tsx';
import { useTopic } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';

/** What a person has to do, each with its one action. What heals by itself is not here. */
export function NeedsYou(): ReactElement {
  const { t, say, sayTitle } = useI18n();
  const health = useTopic('health');
  const items = (health ?? []).filter((item) => item.needsPerson);
  return (
    <section>
      <h3>{t('overview.needsYou')}</h3>
      {health && items.length === 0 ? (
        <p className="quiet">{t('overview.needsNothing')}</p>
      ) : (
        <ol className="needs">
          {items.map((item) => {
            return (
              <li key={item.id} className={item.severity}>
                <b>{sayTitle(item)}</b>
                <p>{say(item)}</p>
                <a href={placeHash(item.page, item.target)}>
                  {t(`go.${item.action}`, { page: t(`page.${item.page}`) })}
                </a>
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}
