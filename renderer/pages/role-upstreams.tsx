import type { ReactElement } from 'react';
import type { Output } from '../../preload/contract.ts';
import { useI18n } from '../i18n/i18n.tsx';

type Upstream = NonNullable<NonNullable<Output<'roles.models'>['cloud']>[number]['upstreams']>[number];

/** Where a model is served, with its quantization and price: each one pins it or lets it go. */
export function UpstreamPicker({
  upstreams,
  pinned,
  onToggle,
}: {
  readonly upstreams: readonly Upstream[];
  readonly pinned: readonly string[];
  readonly onToggle: (slug: string) => void;
}): ReactElement {
  const { t, f } = useI18n();
  return (
    <fieldset className="pins">
      <legend>{t('role.offeredBy')}</legend>
      {upstreams.map(({ slug, name, quantization, promptUsdPerMillion, healthy }) => (
        <button
          key={slug}
          type="button"
          className="button quiet"
          aria-pressed={pinned.includes(slug)}
          title={name}
          onClick={() => onToggle(slug)}
        >
          <span className="mono">{slug}</span>{' '}
          <small>
            {[
              quantization ?? t('role.noQuantization'),
              promptUsdPerMillion === null ? null : t('role.perMillion', { usd: f.usd(promptUsdPerMillion) }),
              healthy ? null : t('role.unhealthy'),
            ]
              .filter((fact) => fact !== null)
              .join(' · ')}
          </small>
        </button>
      ))}
    </fieldset>
  );
}
