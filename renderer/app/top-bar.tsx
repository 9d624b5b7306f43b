import { type ReactElement, type ReactNode, useState } from 'react';
import type { CloudView } from '../../preload/contract.ts';
import { Sheet } from '../components/controls.tsx';
import { useStaleAge } from '../components/panel.tsx';
import { Status, type Tone } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useConnection, useTopic } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';
import { useAsked } from './ui.tsx';

/** Title, what the page adds, and four answers: live? cloud? does anything need me? where is everything else? */
export function TopBar(props: {
  readonly title: string;
  readonly tools?: ReactNode;
  readonly onPalette: () => void;
}): ReactElement {
  const { t, f } = useI18n();
  const health = useTopic('health');
  const needs = (health ?? []).filter((item) => item.needsPerson).length;
  return (
    <header className="top">
      <h2>{props.title}</h2>
      {props.tools}
      <LiveChip />
      <CloudChip />
      {needs > 0 && (
        <a className="chip warn" href={placeHash('overview')}>
          <span aria-hidden="true">!</span>
          <span className="short" aria-hidden="true">
            {f.number(needs)}
          </span>
          <span className="words">{t(needs === 1 ? 'top.needsOne' : 'top.needs', { count: f.number(needs) })}</span>
        </a>
      )}
      <button type="button" className="link" title={t('palette.title')} onClick={props.onPalette}>
        <span className="visually-hidden">{t('palette.title')} </span>
        <kbd>{navigator.platform.startsWith('Mac') ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
    </header>
  );
}

function LiveChip(): ReactElement {
  const { t, f } = useI18n();
  const connection = useConnection();
  const silent = useStaleAge(true);
  if (connection === 'live' && silent !== null) {
    return (
      <span className="chip warn num">
        <span aria-hidden="true">○</span>
        {t('connection.silent', { age: f.duration(silent) })}
      </span>
    );
  }
  const tone: Tone = connection === 'live' ? 'ok' : connection === 'connecting' ? 'idle' : 'bad';
  return (
    <span className={`chip ${tone}`}>
      <span aria-hidden="true">{connection === 'live' ? '●' : '○'}</span>
      {t(`connection.${connection}`)}
    </span>
  );
}

const CLOUD_TONE: Readonly<Record<CloudView['state'], Tone>> = {
  on: 'ok',
  paused: 'warn',
  off: 'bad',
  'key-missing': 'idle',
  'no-agent': 'idle',
};

/** The one global switch there is: pausing all cloud work. Resuming spends money again, so both say what they do first. */
function CloudChip(): ReactElement | null {
  const { t, f } = useI18n();
  const cloud = useTopic('cloud');
  const budget = useTopic('budget');
  const [asking, setAsking] = useState(false);
  useAsked('cloud', () => setAsking(true));
  const pause = useChange('cloud.pause');
  const resume = useChange('cloud.resume');
  if (!cloud) return null;
  const act = cloud.paused ? resume : pause;
  const permits =
    cloud.state === 'on' && budget
      ? t('cloud.permits', { used: f.number(budget.inFlight), usable: f.number(budget.usable) })
      : null;
  return (
    <>
      <button type="button" className="link quiet chip" aria-haspopup="dialog" onClick={() => setAsking(true)}>
        {t(`cloud.${cloud.state}`)}
        {permits && <span className="permits">{permits}</span>}
        <span aria-hidden="true">▾</span>
      </button>
      {asking && (
        <Sheet title={t('cloud.title')} onClose={() => setAsking(false)}>
          <Status tone={CLOUD_TONE[cloud.state]}>{t(`cloud.${cloud.state}`)}</Status>
          <CloudReason cloud={cloud} />
          <p className="quiet">{t(cloud.paused ? 'cloud.resumeMeans' : 'cloud.pauseMeans')}</p>
          <div className="row end">
            <button type="button" className="button" onClick={() => setAsking(false)}>
              {t('action.cancel')}
            </button>
            <button
              type="button"
              className="button primary"
              disabled={act.isPending}
              onClick={() => act.mutate({}, { onSuccess: () => setAsking(false) })}
            >
              {t(cloud.paused ? 'cloud.resume' : 'cloud.pause')}
            </button>
          </div>
        </Sheet>
      )}
    </>
  );
}

function CloudReason({ cloud }: { readonly cloud: CloudView }): ReactElement {
  const { say } = useI18n();
  return <p>{say(cloud.reason)}</p>;
}
