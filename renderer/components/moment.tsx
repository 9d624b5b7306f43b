import type { ReactElement } from 'react';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useNow } from '../state/ticker.tsx';

/** The age of a moment; its absolute local time shows on hover and on focus (of itself, or of the row around it). */
export function Moment(props: { readonly atMs: number | null; readonly inRow?: boolean }): ReactElement {
  const { f } = useI18n();
  const now = useNow();
  if (props.atMs === null) return <span>{UNKNOWN}</span>;
  const focus = props.inRow ? {} : { tabIndex: 0 };
  return (
    <time className="moment" dateTime={new Date(props.atMs).toISOString()} data-at={f.moment(props.atMs)} {...focus}>
      {f.age(Math.max(0, now - props.atMs))}
    </time>
  );
}
