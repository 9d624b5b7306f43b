import type { ReactElement } from 'react';
import { isMessageKey, useI18n } from '../i18n/i18n.tsx';
import { useTopic } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';

/** What a person has to do, each with its one action. What heals by itself is not here. */
export function NeedsYou(): ReactElement {
  const { t } = useI18n();
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
            const action = `go.${item.action}`;
            return (
              <li key={item.id} className={item.severity}>
                <b>{item.title}</b>
                <p>{item.sentence}</p>
                <a href={placeHash(item.page, item.target)}>
                  {isMessageKey(action) ? t(action) : t('go.look', { page: t(`page.${item.page}`) })}
                </a>
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}
